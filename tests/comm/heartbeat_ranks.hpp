// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Heartbeats of several ranks in one thread, over real sockets; and strangers at their doors.
#pragma once

#include "comm/watch/heartbeat.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::watchdog {

using asio::ip::tcp;
using Bytes = std::vector<std::uint8_t>;

/// True if the other side has hung up.
/// @param heard  grows by the bytes that it sent before
inline bool is_closed(tcp::socket& socket, std::size_t& heard) {
  std::array<char, 4096> bytes{};
  asio::error_code error;
  socket.non_blocking(true);
  heard += socket.read_some(asio::buffer(bytes), error);
  return error && error != asio::error::would_block;
}
inline bool is_closed(tcp::socket& socket) {
  std::size_t heard = 0;
  return is_closed(socket, heard);
}

/// Their thread is that of tick() and until().
class HeartbeatRanks : public ::testing::Test {
 protected:
  struct Rank {
    std::vector<Peer> peers;
    std::unique_ptr<Heartbeat> heartbeat;
    int beats = 0, changes = 0;
    std::function<void()> on_change = [] {};
  };

  explicit HeartbeatRanks(int count, const std::vector<std::string>& addresses = {"127.0.0.1"},
                          std::int64_t hello_within_ns = Heartbeat::kHelloWithinNs)
      : ranks(static_cast<std::size_t>(count)) {
    std::vector<tcp::acceptor> acceptors;
    std::vector<Peer> peers(ranks.size());
    for (int rank = 0; rank < count; ++rank) {
      acceptors.push_back(listen());
      at(peers, rank).who = {.rank = rank,
                             .host = "here",
                             .pid = 1,
                             .addresses = addresses,
                             .port = acceptors.back().local_endpoint().port()};
    }
    for (int rank = 0; rank < count; ++rank) {
      of(rank).peers = peers;
      of(rank).heartbeat = std::make_unique<Heartbeat>(
          context, std::move(at(acceptors, rank)), rank, token, of(rank).peers,
          Heartbeat::Callbacks{.make_beat = [this, rank] { return ++of(rank).beats, Beat{}; },
                               .changed = [this, rank] { ++of(rank).changes, of(rank).on_change(); }},
          hello_within_ns);
    }
    for (Rank& rank : ranks) rank.heartbeat->start();
  }

  tcp::acceptor listen() { return {context, {asio::ip::address_v4::loopback(), 0}}; }
  Rank& of(int rank) { return at(ranks, rank); }
  /// Knowledge of a rank about another one.
  Peer& peer(int rank, int other) { return at(of(rank).peers, other); }

  /// All beat once, and hear all that comes of it.
  void tick() {
    for (Rank& rank : ranks)
      if (rank.heartbeat) rank.heartbeat->beat();
    for (int quiet = 0; quiet < 3; ++quiet) {
      context.restart();
      if (context.run_for(std::chrono::microseconds(300)) > 0) quiet = 0;
    }
  }
  /// Fails after a time that only a hang takes.
  void until(const char* what, const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "it does not come that " << what;
      tick();
    }
  }

  /// At the door of a rank.
  tcp::socket stranger(int rank = 0) {
    tcp::socket socket(context);
    socket.connect(
        {asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(peer(rank, rank).who.port)});
    return socket;
  }
  void expect_disconnected(const Bytes& said, const std::string& why, int rank = 0) {
    SCOPED_TRACE(why);
    tcp::socket socket = stranger(rank);
    asio::write(socket, asio::buffer(said));
    std::size_t heard = 0;
    until("a stranger is disconnected", [&] { return is_closed(socket, heard); });
    EXPECT_EQ(heard, 0U) << "it was taken for a rank, and told the token";
  }

  asio::io_context context{1};
  Token token = draw_token();
  std::vector<Rank> ranks;
};

/// Two ranks, which have met.
class HeartbeatTest : public HeartbeatRanks {
 protected:
  explicit HeartbeatTest(std::int64_t hello_within_ns = Heartbeat::kHelloWithinNs)
      : HeartbeatRanks(2, {"no address", "127.0.0.1"}, hello_within_ns) {
    until("they meet", [this] { return peer(0, 1).watched && peer(1, 0).watched; });
  }

  int disturbances() { return of(0).changes + of(1).changes; }
  /// Rank 1 is where it was: connected, heard anew, and nothing has happened.
  void expect_rank_1_undisturbed() {
    const std::int64_t before = peer(0, 1).heard_ns;
    until("rank 1 is heard", [&] { return peer(0, 1).heard_ns > before; });
    EXPECT_LT(peer(0, 1).where.since_ns, peer(0, 1).heard_ns) << "its beats tell when they were sent";
    EXPECT_TRUE(peer(0, 1).watched);
    EXPECT_FALSE(peer(0, 1).dead || peer(0, 1).leaving);
    EXPECT_EQ(disturbances(), 0);
  }
};

}  // namespace lockstep::watchdog
