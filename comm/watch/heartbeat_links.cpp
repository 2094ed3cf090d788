// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The higher rank connects to the lower. A connection that ends is looked into: a port that refuses says that
/// the process is gone.
#include "comm/watch/connection.hpp"
#include "comm/watch/heartbeat.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace lockstep::watchdog {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr std::ptrdiff_t kMostStrangers = 64;  ///< at the same time, of those that came by themselves
constexpr milliseconds kConnectWithin{2000};
constexpr milliseconds kProbeEvery{20};
constexpr int kProbes = 50;

}  // namespace

bool Heartbeat::linked(int rank) const {
  return rank != rank_ && std::min(rank, rank_) < kWatchers;
}

void Heartbeat::accept() {
  acceptor_.async_accept([this](const asio::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      make_room_for_stranger();
      auto stranger = std::make_shared<Connection>(*this, std::move(socket));
      strangers_.insert(stranger);
      stranger->start();
      return accept();
    }
    // No descriptors left, say: not as fast as the processor goes.
    auto pause = std::make_shared<asio::steady_timer>(context_, milliseconds(200));
    pause->async_wait([this, pause](const asio::error_code& stopped) {
      if (!stopped) accept();
    });
  });
}

/// The newest may be a rank, which says hello at once. The one that has been here longest and has not is none.
void Heartbeat::make_room_for_stranger() {
  const auto was_called = [](const auto& stranger) { return stranger->expected >= 0; };
  if (std::ranges::count_if(strangers_, std::not_fn(was_called)) < kMostStrangers) return;
  const auto oldest = std::ranges::min_element(strangers_, {}, [&](const auto& stranger) {
    return std::pair(was_called(stranger), stranger->since_ns);
  });
  (*oldest)->abandon();
  strangers_.erase(oldest);
}

void Heartbeat::connect(int rank) {
  if (last_sent_ || is_dropped(rank)) return;
  Link& link = at(links_, rank);
  const Identity& who = at(peers_, rank).who;
  if (link.connecting || who.addresses.empty()) return;
  asio::error_code bad;
  const auto address = asio::ip::make_address(who.addresses[link.next_address++ % who.addresses.size()], bad);
  if (bad) return;
  link.connecting = true;
  auto connection = std::make_shared<Connection>(*this, tcp::socket(context_));
  connection->connect({address, static_cast<asio::ip::port_type>(who.port)}, kConnectWithin,
                      [this, rank, connection](bool good) {
                        at(links_, rank).connecting = false;
                        if (good) on_connected(rank, connection);
                      });
}

void Heartbeat::on_connected(int rank, const std::shared_ptr<Connection>& connection) {
  if (last_sent_) return connection->abandon();
  connection->expected = rank;
  strangers_.insert(connection);
  connection->send(encode(hello_));
  connection->start();
}

void Heartbeat::close_silent_strangers() {
  const std::int64_t now = clock_ns();
  std::erase_if(strangers_, [&](const auto& stranger) {
    const bool late = now - stranger->since_ns > hello_within_ns_;
    if (late) stranger->abandon();
    return late;
  });
}

/// The other end proves that it belongs to this job; the called end answers.
bool Heartbeat::on_hello(Connection& connection, const Hello& hello) {
  const bool ours = equal(hello.token, hello_.token) && hello.world_size == hello_.world_size &&
                    hello.rank < peers_.size() && linked(static_cast<int>(hello.rank));
  const bool called = connection.expected >= 0;
  if (last_sent_ && !called) return false;  // a peer that is not answered does not miss this rank
  if (!ours || connection.rank >= 0 || (called && connection.expected != static_cast<int>(hello.rank)))
    return false;
  const int rank = static_cast<int>(hello.rank);
  if (is_dropped(rank)) return true;
  if (!called && rank < rank_) return false;  // those are called
  Peer& peer = at(peers_, rank);
  Link& link = links_[hello.rank];
  if (link.connection) link.connection->abandon();
  link.connection = connection.shared_from_this();
  strangers_.erase(link.connection);
  connection.rank = rank;
  if (const auto remote = connection.remote_address())
    link.endpoint = tcp::endpoint(*remote, static_cast<asio::ip::port_type>(peer.who.port));
  if (!called) connection.send(encode(hello_));
  peer.watched = !peer.leaving;
  peer.heard_ns = clock_ns();
  send_beat(rank);
  return true;
}

void Heartbeat::on_closed(Connection& connection) {
  const auto self = connection.shared_from_this();
  strangers_.erase(self);
  if (connection.rank < 0) return;
  const int rank = connection.rank;
  Link& link = at(links_, rank);
  if (link.connection != self) return;
  link.connection.reset();
  const Peer& peer = at(peers_, rank);
  if (peer.watched && !peer.leaving && !is_dropped(rank)) probe(rank, kProbes);
}

/// True if a process still listens there. A process that ends closes its connections and its port in no
/// order that could be relied on: once is not enough.
void Heartbeat::probe(int rank, int tries) {
  Link& link = at(links_, rank);
  if (!link.endpoint || tries == 0 || link.connection || is_dropped(rank)) return;
  auto socket = std::make_shared<tcp::socket>(context_);
  socket->async_connect(*link.endpoint, [this, rank, tries, socket](const asio::error_code& error) {
    if (error == asio::error::operation_aborted) return;
    if (error == asio::error::connection_refused) {
      if (!found_dead(rank, clock_ns())) return;
      if (relays()) pass_on(relayed(rank, Died{}), true);
      return callbacks_.changed();
    }
    auto pause = std::make_shared<asio::steady_timer>(context_, kProbeEvery);
    pause->async_wait([this, rank, tries, pause](const asio::error_code& stopped) {
      if (!stopped) probe(rank, tries - 1);
    });
  });
}

}  // namespace lockstep::watchdog
