// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Heartbeats of several ranks in one thread, over real sockets.
#pragma once

#include "comm/watch/heartbeat.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::watchdog {

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
    std::vector<asio::ip::tcp::acceptor> acceptors;
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

  asio::ip::tcp::acceptor listen() { return {context, {asio::ip::address_v4::loopback(), 0}}; }
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

  asio::io_context context{1};
  Token token = draw_token();
  std::vector<Rank> ranks;
};

}  // namespace lockstep::watchdog
