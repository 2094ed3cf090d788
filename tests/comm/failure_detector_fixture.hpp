// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Four ranks as a failure detector sees them, its notices and its verdicts.
#pragma once

#include "comm/watch/failure_detector.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::watchdog {

/// Ranks in pairs on hosts, all alive, all in the sums of step 100, seen by one of them.
class FailureDetectorTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSecond = 1'000'000'000, kStart = 1000 * kSecond;
  /// All ranks at first, as a verdict tells it.
  static inline const std::string kInSums =
      "step 100, reducing gradients, bucket 2, waiting in the gradients' all-reduce (collective 500)";

  FailureDetectorTest() {
    for (int rank = 0; rank < 4; ++rank) {
      Peer peer;
      peer.who = {.rank = rank, .host = rank < 2 ? "node1" : "node2", .pid = 100 + rank, .addresses = {}};
      peer.watched = true;
      peer.heard_ns = kStart;
      peer.where = at("the gradients' all-reduce");
      peers.push_back(peer);
    }
  }

  static RankStatus at(const std::string& place) {
    RankStatus where{.step = 100,
                     .phase = Phase::kReducing,
                     .waiting = Waiting::kForAll,
                     .collective = 500,
                     .bucket = 1,
                     .since_ns = kStart};
    put_text(place, where.place);
    return where;
  }
  Peer& peer(int rank) { return lockstep::at(peers, rank); }
  void computes(int rank) {
    peer(rank).where =
        RankStatus{.step = 100, .phase = Phase::kComputing, .collective = 499, .since_ns = kStart};
  }
  void dies(int rank, double seconds) {
    peer(rank).dead = true;
    peer(rank).lost_ns = after(seconds);
  }
  /// Forgets what it has learnt, and is this rank's.
  void watch_as(int rank, double timeout = 30) {
    detector = FailureDetector(rank, Limits::for_timeout(timeout));
  }
  static std::int64_t after(double seconds) {
    return kStart + static_cast<std::int64_t>(seconds * static_cast<double>(kSecond));
  }

  /// A look, so many seconds after the start. All but these ranks are heard then.
  Findings look(double seconds, const std::vector<int>& silent = {}) {
    for (Peer& each : peers)
      if (std::ranges::find(silent, each.who.rank) == silent.end()) each.heard_ns = after(seconds);
    return detector.look(after(seconds), peers);
  }
  /// The only notice of a look.
  std::string notice_at(double seconds, const std::vector<int>& silent = {}) {
    const auto notices = look(seconds, silent).notices;
    EXPECT_EQ(notices.size(), 1U);
    return notices.empty() ? "" : notices[0];
  }
  /// The verdict of a look, which must have one.
  Verdict verdict_at(double seconds, const std::vector<int>& silent = {}) {
    const auto verdict = look(seconds, silent).verdict;
    EXPECT_TRUE(verdict);
    return verdict.value_or(Verdict{});
  }
  std::string text(const Verdict& verdict, double seconds) const {
    std::string all;
    for (const auto& line : describe(verdict, peers, {0, after(seconds), 30})) all += line + "\n";
    return all;
  }

  std::vector<Peer> peers;
  FailureDetector detector{0, Limits::for_timeout(30)};
};

}  // namespace lockstep::watchdog
