// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The higher rank connects to the lower. A connection that ends is looked into: a port that refuses says that
/// the process is gone.
#include "comm/watch/heartbeat.hpp"

#include "comm/watch/connection.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::watchdog {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr std::ptrdiff_t kMostStrangers = 64;  ///< at the same time, of those that came by themselves
constexpr milliseconds kConnectWithin{2000};
constexpr milliseconds kProbeEvery{20};
constexpr int kProbes = 50;
/// A round trip stays the measure for so long, unless a shorter one comes.
constexpr std::int64_t kOffsetAgesNs = 30'000'000'000;

}  // namespace

/// One per other rank.
struct Heartbeat::Link {
  std::shared_ptr<Connection> connection;
  std::optional<tcp::endpoint> endpoint;  ///< where its watchdog was reached
  std::size_t next_address = 0;
  bool connecting = false;
  std::int64_t echo_ns = 0, echo_came_ns = 0;  ///< of its last beat
  std::optional<Offset> offset;
  std::int64_t offset_ns = 0;  ///< when that was measured
};

Heartbeat::Heartbeat(asio::io_context& context, tcp::acceptor acceptor, int rank, const Token& token,
                     std::vector<Peer>& peers, Callbacks callbacks, std::int64_t hello_within_ns)
    : context_(context),
      acceptor_(std::move(acceptor)),
      rank_(rank),
      token_(token),
      peers_(peers),
      callbacks_(std::move(callbacks)),
      hello_within_ns_(hello_within_ns),
      links_(peers.size()) {}

Heartbeat::~Heartbeat() {
  for (const auto& stranger : strangers_) stranger->abandon();
  for (Link& link : links_) {
    if (link.connection) link.connection->abandon();
  }
}

bool Heartbeat::linked(int rank) const {
  return rank != rank_ && std::min(rank, rank_) < kWatchers;
}

void Heartbeat::start() {
  accept();
  beat();
}

void Heartbeat::accept() {
  acceptor_.async_accept([this](const asio::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      make_room_for_stranger();
      auto stranger = std::make_shared<Connection>(*this, std::move(socket));
      strangers_.insert(stranger);
      stranger->start();
    }
    if (!error) return accept();
    // No descriptors left, say: not as fast as the processor goes.
    auto pause = std::make_shared<asio::steady_timer>(context_, milliseconds(200));
    pause->async_wait([this, pause](const asio::error_code& stopped) {
      if (!stopped) accept();
    });
  });
}

/// The newest may be a rank, which says hello at once; who has been here longest and has not is none.
void Heartbeat::make_room_for_stranger() {
  const auto came = [](const auto& stranger) { return stranger->expected() < 0; };
  if (std::ranges::count_if(strangers_, came) < kMostStrangers) return;
  auto oldest = strangers_.end();
  for (auto stranger = strangers_.begin(); stranger != strangers_.end(); ++stranger) {
    const bool older = oldest == strangers_.end() || (*stranger)->since_ns() < (*oldest)->since_ns();
    if (came(*stranger) && older) oldest = stranger;
  }
  (*oldest)->abandon();
  strangers_.erase(oldest);
}

void Heartbeat::connect(int rank) {
  if (last_sent_) return;
  Link& link = links_[static_cast<std::size_t>(rank)];
  const Identity& who = peers_[static_cast<std::size_t>(rank)].who;
  if (link.connecting || who.addresses.empty()) return;
  asio::error_code bad;
  const auto address = asio::ip::make_address(who.addresses[link.next_address++ % who.addresses.size()], bad);
  if (bad) return;
  link.connecting = true;
  auto connection = std::make_shared<Connection>(*this, tcp::socket(context_));
  connection->connect({address, static_cast<asio::ip::port_type>(who.port)}, kConnectWithin,
                      [this, rank, connection](bool good) {
                        links_[static_cast<std::size_t>(rank)].connecting = false;
                        if (good) on_connected(rank, connection);
                      });
}

void Heartbeat::on_connected(int rank, const std::shared_ptr<Connection>& connection) {
  if (last_sent_) return connection->abandon();
  connection->expect(rank);
  strangers_.insert(connection);
  connection->send(
      encode(Hello{token_, static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(peers_.size())}));
  connection->start();
}

bool Heartbeat::on_message(Connection& connection, const Message& message) {
  if (dropped_) return true;
  if (const auto* hello = std::get_if<Hello>(&message)) return on_hello(connection, *hello);
  if (!connection.known()) return false;
  const int rank = connection.rank();
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.heard_ns = clock_ns();
  if (const auto* beat = std::get_if<Beat>(&message)) on_beat(rank, *beat);
  if (const auto* arrivals = std::get_if<Arrivals>(&message)) callbacks_.arrivals(rank, *arrivals);
  if (const auto* leaving = std::get_if<Leaving>(&message)) {
    peer.leaving = true;
    peer.farewell = *leaving;
    callbacks_.changed();
  }
  if (std::holds_alternative<Goodbye>(message)) peer.watched = false;
  return true;
}

/// The other end proves that it belongs to this job; who was called answers.
bool Heartbeat::on_hello(Connection& connection, const Hello& hello) {
  const bool ours = equal(hello.token, token_) && hello.world_size == peers_.size() &&
                    hello.rank < peers_.size() && linked(static_cast<int>(hello.rank));
  const bool called = connection.expected() >= 0;
  if (last_sent_ && !called) return false;  // who is not answered does not miss this rank
  if (!ours || connection.known() || (called && connection.expected() != static_cast<int>(hello.rank)))
    return false;
  const int rank = static_cast<int>(hello.rank);
  if (!called && rank < rank_) return false;  // those are called
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  Link& link = links_[hello.rank];
  if (link.connection) link.connection->abandon();
  link.connection = connection.shared_from_this();
  strangers_.erase(link.connection);
  connection.know(rank);
  if (const auto remote = connection.remote_address())
    link.endpoint = tcp::endpoint(*remote, static_cast<asio::ip::port_type>(peer.who.port));
  if (!called)
    connection.send(
        encode(Hello{token_, static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(peers_.size())}));
  peer.watched = !peer.leaving;
  peer.heard_ns = clock_ns();
  if (!dropped_) send(rank, callbacks_.make_beat(peer));
  return true;
}

void Heartbeat::on_beat(int rank, const Beat& beat) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  Link& link = links_[static_cast<std::size_t>(rank)];
  const std::int64_t now = peer.heard_ns;
  peer.where = beat.where;
  // Whatever it says, nothing lies in the future or before the other machine's start.
  const std::int64_t age =
      beat.sent_ns < beat.where.since_ns || beat.where.since_ns < 0 ? 0 : beat.sent_ns - beat.where.since_ns;
  peer.where.since_ns = now - std::min(age, now);
  peer.traced = beat.traced;
  peer.device = text_in(beat.device);
  if (!beat.traced) peer.state = '?';
  const auto witnessed = static_cast<std::size_t>(beat.witnessed_rank);
  if (beat.witnessed_rank >= 0 && witnessed < peers_.size() && beat.witnessed_rank != rank_)
    peers_[witnessed].state = beat.witnessed_state;
  measure_offset(link, beat, now);
  link.echo_ns = beat.sent_ns;
  link.echo_came_ns = now;
}

/// As NTP does it: the shortest round trip knows best.
void Heartbeat::measure_offset(Link& link, const Beat& beat, std::int64_t now_ns) const {
  constexpr std::int64_t kSane = std::int64_t{1} << 60;
  const auto sane = [](std::int64_t ns) { return ns > 0 && ns < kSane; };
  if (!sane(beat.echo_ns) || !sane(beat.sent_ns) || beat.held_ns < 0 || beat.held_ns > beat.sent_ns) return;
  const std::int64_t trip = now_ns - beat.echo_ns - beat.held_ns;
  if (trip < 0) return;
  const std::int64_t ahead = ((beat.sent_ns - beat.held_ns - beat.echo_ns) + (beat.sent_ns - now_ns)) / 2;
  const bool old = now_ns - link.offset_ns > kOffsetAgesNs;
  if (link.offset && !old && trip / 2 >= link.offset->accuracy_ns) return;
  link.offset = Offset{ahead, trip / 2};
  link.offset_ns = now_ns;
}

std::optional<Heartbeat::Offset> Heartbeat::offset(int rank) const {
  return links_[static_cast<std::size_t>(rank)].offset;
}

void Heartbeat::on_closed(Connection& connection) {
  const auto self = connection.shared_from_this();
  strangers_.erase(self);
  if (!connection.known()) return;
  const int rank = connection.rank();
  Link& link = links_[static_cast<std::size_t>(rank)];
  if (link.connection != self) return;
  link.connection.reset();
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.watched && !peer.leaving && !dropped_) probe(rank, kProbes);
}

/// Does a process still listen there? A process that ends closes its connections and its port in no
/// order that could be relied on: once is not enough.
void Heartbeat::probe(int rank, int tries) {
  Link& link = links_[static_cast<std::size_t>(rank)];
  if (!link.endpoint || tries == 0 || link.connection || dropped_) return;
  auto socket = std::make_shared<tcp::socket>(context_);
  socket->async_connect(*link.endpoint, [this, rank, tries, socket](const asio::error_code& error) {
    if (error == asio::error::operation_aborted) return;
    if (error == asio::error::connection_refused) return found_dead(rank);
    auto pause = std::make_shared<asio::steady_timer>(context_, kProbeEvery);
    pause->async_wait([this, rank, tries, pause](const asio::error_code& stopped) {
      if (!stopped) probe(rank, tries - 1);
    });
  });
}

void Heartbeat::found_dead(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.dead || !peer.watched || peer.leaving) return;
  peer.dead = true;
  peer.lost_ns = clock_ns();
  callbacks_.changed();
}

void Heartbeat::beat() {
  if (dropped_) return;
  const std::int64_t now = clock_ns();
  std::erase_if(strangers_, [&](const auto& stranger) {
    const bool late = now - stranger->since_ns() > hello_within_ns_;
    if (late) stranger->abandon();
    return late;
  });
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (!linked(rank) || peer.dead || peer.leaving) continue;
    const Link& link = links_[static_cast<std::size_t>(rank)];
    if (link.connection) {
      send(rank, callbacks_.make_beat(peer));
    } else if (rank < rank_) {
      connect(rank);
    }
  }
}

void Heartbeat::send(int rank, const Message& message) {
  Link& link = links_[static_cast<std::size_t>(rank)];
  if (!link.connection || dropped_) return;
  Message copy = message;
  if (auto* beat = std::get_if<Beat>(&copy)) {
    if (link.connection->is_behind()) return;  // it does not read: a later beat says more
    beat->sent_ns = clock_ns();
    beat->echo_ns = link.echo_ns;
    beat->held_ns = link.echo_ns == 0 ? 0 : beat->sent_ns - link.echo_came_ns;
  }
  link.connection->send(encode(copy));
}

void Heartbeat::send_to_all(const Message& message) {
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) send(rank, message);
}

void Heartbeat::send_last(const Message& message) {
  send_to_all(message);
  if (dropped_) return;
  last_sent_ = true;
  for (const auto& stranger : strangers_)
    if (stranger->expected() >= 0) stranger->send(encode(message));
}

bool Heartbeat::all_sent() const {
  return std::ranges::all_of(
             links_, [](const Link& link) { return !link.connection || link.connection->all_sent(); }) &&
         std::ranges::all_of(strangers_, [](const auto& stranger) { return stranger->all_sent(); });
}

}  // namespace lockstep::watchdog
