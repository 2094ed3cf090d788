// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Heartbeats and other messages, sent and received; in large jobs by way of watchers.
#include "comm/watch/heartbeat.hpp"

#include "comm/watch/connection.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::watchdog {
namespace {

using asio::ip::tcp;

/// After so many beats without an answer a member turns to another watcher, too. A watcher takes it that a member
/// talks to another one. Well before silence is named, so that no member seems silent because its watcher is.
constexpr int kUnanswered = 2;
/// A member is connected with so many watchers of which it does not know that they are lost.
constexpr int kKept = 2;
/// The way from watcher to watcher, ranks far from each other, because neighbours share a host.
constexpr std::array kNextWatcher = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7};

/// The i-th watcher that a member turns to, of kWatchers. Rank 0 is the last.
int watcher_of(int member, std::size_t i) {
  return i < kNextWatcher.size() ? 1 + (member + kNextWatcher[i]) % static_cast<int>(kNextWatcher.size()) : 0;
}
static_assert(kNextWatcher.size() + 1 == kWatchers);

}  // namespace

Heartbeat::Heartbeat(asio::io_context& context, tcp::acceptor acceptor, int rank, const Token& token,
                     Peers& peers, Callbacks callbacks, std::int64_t hello_within_ns)
    : context_(context),
      acceptor_(std::move(acceptor)),
      rank_(rank),
      hello_{token, static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(peers.size())},
      peers_(peers),
      callbacks_(std::move(callbacks)),
      hello_within_ns_(hello_within_ns),
      links_(peers.size()),
      dropped_(peers.size()) {}

Heartbeat::~Heartbeat() {
  for (const auto& stranger : strangers_) stranger->abandon();
  for (Link& link : links_)
    if (link.connection) link.connection->abandon();
}

void Heartbeat::start() {
  accept();
  beat();
}

bool Heartbeat::on_message(Connection& connection, const Message& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) return on_hello(connection, *hello);
  if (connection.rank >= 0 && is_dropped(connection.rank)) return true;
  if (connection.rank < 0 || std::holds_alternative<Died>(message)) return false;
  const int rank = connection.rank;
  const std::int64_t now = clock_ns();
  at(peers_, rank).heard_ns = now;
  if (const auto* relay = std::get_if<Relay>(&message)) return on_relay(rank, *relay, now);
  if (const auto* beat = std::get_if<Beat>(&message)) {
    Link& link = at(links_, rank);
    link.unanswered = 0;
    if (relays()) link.fresh = *beat;
    on_beat(rank, *beat, now);
  }
  if (!on_news(rank, message, now)) return true;
  if (relays()) pass_on(relayed(rank, message), true);
  if (!std::holds_alternative<Goodbye>(message)) callbacks_.changed();
  return true;
}

/// Handles news from a watcher. Its word on a rank counts unless something later is known.
bool Heartbeat::on_relay(int from, const Relay& relay, std::int64_t now_ns) {
  if (!is_large() || from >= kWatchers) return false;
  bool changed = false;
  for (const Relayed& relayed : relay.list) {
    const int rank = static_cast<int>(relayed.rank);
    if (relayed.rank >= peers_.size()) return false;
    if (rank == rank_) continue;
    const std::int64_t when = now_ns - std::clamp<std::int64_t>(relayed.age_ns, 0, now_ns);
    Peer& peer = at(peers_, rank);
    const auto* beat = std::get_if<Beat>(&relayed.said);
    if (beat != nullptr && when >= peer.heard_ns) {
      peer.watched = !peer.ended && !peer.leaving;
      peer.heard_ns = when;
      on_beat(rank, *beat, when);
    }
    if (!on_news(rank, relayed.said, when)) continue;
    changed = true;
    if (relays()) pass_on(relayed, false);
  }
  if (changed) callbacks_.changed();
  return true;
}

/// Handles news that a rank ends, said at that time of this rank's clock. False: it is nothing, or known.
bool Heartbeat::on_news(int rank, const Message& said, std::int64_t when_ns) {
  Peer& peer = at(peers_, rank);
  if (const auto* leaving = std::get_if<Leaving>(&said)) {
    const bool known = peer.leaving && (peer.farewell.spoken || !leaving->spoken);
    peer.leaving = true;
    peer.heard_ns = std::max(peer.heard_ns, when_ns);  // a member hears nothing else from a member
    peer.farewell = known ? peer.farewell : *leaving;
    return !known;
  }
  if (std::holds_alternative<Goodbye>(said)) {
    peer.watched = false;
    return !std::exchange(peer.ended, true);
  }
  return std::holds_alternative<Died>(said) && found_dead(rank, when_ns);
}

void Heartbeat::on_beat(int rank, const Beat& beat, std::int64_t when_ns) {
  Peer& peer = at(peers_, rank);
  peer.where = beat.where;
  // Bounds the time: nothing lies in the future or before the other machine's start.
  const std::int64_t age =
      beat.sent_ns < beat.where.since_ns || beat.where.since_ns < 0 ? 0 : beat.sent_ns - beat.where.since_ns;
  peer.where.since_ns = when_ns - std::min(age, when_ns);
  peer.traced = beat.traced;
  peer.device = text_in(beat.device);
  if (!beat.traced) peer.state = '?';
  const auto witnessed = static_cast<std::size_t>(beat.witnessed_rank);
  if (witnessed < peers_.size() && beat.witnessed_rank != rank_)
    peers_[witnessed].state = beat.witnessed_state;
}

bool Heartbeat::found_dead(int rank, std::int64_t when_ns) {
  Peer& peer = at(peers_, rank);
  if (peer.dead || !peer.watched || peer.leaving) return false;
  peer.dead = true;
  peer.lost_ns = when_ns;
  return true;
}

// News that a watcher passes on.

Relayed Heartbeat::relayed(int rank, Message said) const {
  const std::int64_t since = clock_ns() - at(peers_, rank).heard_ns;
  return {static_cast<std::uint32_t>(rank), std::holds_alternative<Beat>(said) ? since : 0, std::move(said)};
}

/// Passes news on. News that arrive together leave together: when all ranks end, that is a message for each of them.
/// @param to_watchers  the news come from a rank that is no watcher
void Heartbeat::pass_on(const Relayed& news, bool to_watchers) {
  const auto* leaving = std::get_if<Leaving>(&news.said);
  const bool ends_all = leaving != nullptr && leaving->spoken;
  const bool is_of_watcher = news.rank < static_cast<std::uint32_t>(kWatchers);
  if (for_watchers_.empty() && for_members_.empty()) asio::post(context_, [this] { send_news(); });
  if (to_watchers) for_watchers_.push_back(news);
  if (is_of_watcher || ends_all) for_members_.push_back(news);
}

void Heartbeat::send_news() {
  const auto of_watchers = encode_relays(std::exchange(for_watchers_, {}));
  const auto of_members = encode_relays(std::exchange(for_members_, {}));
  for (int rank = 0; relays() && rank < static_cast<int>(peers_.size()); ++rank)
    send_bytes(rank, rank < kWatchers ? of_watchers : of_members);
}

std::vector<std::uint8_t> Heartbeat::take_fresh_beats(int first_rank, int end_rank) {
  std::vector<Relayed> list;
  for (int rank = first_rank; relays() && rank < end_rank; ++rank) {
    const auto beat = std::exchange(at(links_, rank).fresh, std::nullopt);
    if (beat && at(peers_, rank).watched) list.push_back(relayed(rank, *beat));
  }
  return encode_relays(list);
}

// Messages to send.

void Heartbeat::drop_network(const std::function<bool(int)>& to) {
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank)
    at(dropped_, rank) = is_dropped(rank) || to(rank);
}

void Heartbeat::beat() {
  close_silent_strangers();
  if (is_large() && !relays()) return beat_as_member();
  const int ranks = static_cast<int>(peers_.size());
  const auto of_watchers = take_fresh_beats(0, std::min(kWatchers, ranks));
  const auto of_members = take_fresh_beats(kWatchers, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const Peer& peer = at(peers_, rank);
    const Link& link = at(links_, rank);
    if (!linked(rank) || peer.dead || peer.leaving) continue;
    const bool is_member = is_large() && rank >= kWatchers;
    if (!link.connection && rank < rank_) connect(rank);
    if (is_member && link.unanswered >= kUnanswered) continue;
    send_beat(rank, is_member ? of_watchers : of_members);
  }
}

/// To the first watcher in this rank's order, and as long as nothing comes from it to the next.
void Heartbeat::beat_as_member() {
  int kept = 0;
  bool answered = false;
  for (std::size_t i = 0; i < std::size_t{kWatchers} && !(answered && kept >= kKept); ++i) {
    const int rank = watcher_of(rank_, i);
    const Peer& peer = at(peers_, rank);
    Link& link = at(links_, rank);
    if (peer.dead || peer.leaving || peer.ended) continue;
    const bool answers = link.unanswered < kUnanswered;
    if (!link.connection) connect(rank);
    if (!answered) send_beat(rank);
    answered = answered || answers;
    kept += answers ? 1 : 0;
  }
}

/// Nothing to a rank that does not read: a later beat says more.
void Heartbeat::send_beat(int rank, const std::vector<std::uint8_t>& more) {
  Link& link = at(links_, rank);
  ++link.unanswered;
  if (!link.connection || is_dropped(rank) || link.connection->is_behind()) return;
  Beat beat = callbacks_.make_beat();
  beat.sent_ns = clock_ns();
  auto bytes = encode(beat);
  bytes.insert(bytes.end(), more.begin(), more.end());
  link.connection->send(std::move(bytes));
}

void Heartbeat::send_bytes(int rank, const std::vector<std::uint8_t>& bytes) {
  Link& link = at(links_, rank);
  if (link.connection && !is_dropped(rank) && !bytes.empty()) link.connection->send(bytes);
}

void Heartbeat::send_to_all(const Message& message) {
  const auto bytes = encode(message);
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) send_bytes(rank, bytes);
}

void Heartbeat::send_last(const Message& message) {
  send_news();
  send_to_all(message);
  last_sent_ = true;
  for (const auto& stranger : strangers_)
    if (stranger->expected >= 0 && !is_dropped(stranger->expected)) stranger->send(encode(message));
}

bool Heartbeat::all_sent() const {
  return std::ranges::all_of(
             links_, [](const Link& link) { return !link.connection || link.connection->all_sent(); }) &&
         std::ranges::all_of(strangers_, [](const auto& stranger) { return stranger->all_sent(); });
}

}  // namespace lockstep::watchdog
