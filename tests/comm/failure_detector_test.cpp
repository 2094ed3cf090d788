// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Verdicts from signs of life, their moments, and their words.
#include "comm/watch/failure_detector.hpp"

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::watchdog {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1000 * kSecond;

/// Ranks in pairs on hosts, all alive, all in the sums of step 100, seen by one of them.
class FailureDetectorTest : public ::testing::Test {
 protected:
  explicit FailureDetectorTest(int count = 4) {
    for (int rank = 0; rank < count; ++rank) {
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
  void computes(int rank) {
    Peer& peer = peers[static_cast<std::size_t>(rank)];
    peer.where = RankStatus{.step = 100, .phase = Phase::kComputing, .collective = 499, .since_ns = kStart};
  }
  /// All but these are heard now.
  void hear_all_but(const std::vector<int>& silent, std::int64_t now) {
    for (Peer& peer : peers) {
      if (std::ranges::find(silent, peer.who.rank) == silent.end()) peer.heard_ns = now;
    }
  }
  Peer& peer(int rank) { return peers[static_cast<std::size_t>(rank)]; }
  static std::int64_t after(double seconds) {
    return kStart + static_cast<std::int64_t>(seconds * static_cast<double>(kSecond));
  }
  std::string text(const Verdict& verdict, std::int64_t now, int rank = 0) const {
    std::string all;
    for (const auto& line : describe(verdict, peers, {rank, now, 30})) all += line + "\n";
    return all;
  }

  /// The only notice of a look.
  std::string notice_at(FailureDetector& by, std::int64_t now) const {
    const auto notices = by.look(now, peers).notices;
    EXPECT_EQ(notices.size(), 1U);
    return notices.empty() ? "" : notices[0];
  }
  /// The verdict of a look, which must have one.
  Verdict verdict_at(std::int64_t now) {
    const auto verdict = detector.look(now, peers).verdict;
    EXPECT_TRUE(verdict);
    return verdict.value_or(Verdict{});
  }

  std::vector<Peer> peers;
  FailureDetector detector{0, Limits::for_timeout(30)};
};

TEST_F(FailureDetectorTest, NothingIsSaidOfRanksThatLive) {
  for (int half = 0; half < 200; ++half) {
    const double seconds = half * 0.5;
    hear_all_but({}, after(seconds));
    const auto findings = detector.look(after(seconds), peers);
    EXPECT_TRUE(findings.notices.empty() && !findings.verdict) << seconds;
  }
}

TEST_F(FailureDetectorTest, DeathIsJudgedWhenItHasSettled) {
  peer(2).dead = true;
  peer(2).lost_ns = after(1);
  hear_all_but({2}, after(1));
  EXPECT_FALSE(detector.look(after(1.1), peers).verdict);
  const Verdict verdict = verdict_at(after(1.2));
  EXPECT_EQ(verdict.cause, Cause::kDied);
  EXPECT_EQ(verdict.initiating, std::vector<int>{2});
  const auto words = text(verdict, after(1.2));
  EXPECT_TRUE(contains(
      words, {"rank 2 on node2 (pid 102) died: its process is gone; last seen in step 100",
              "ranks 0-1, 3: step 100, reducing gradients, bucket 2, waiting in the gradients' all-reduce"}));
  EXPECT_FALSE(detector.look(after(2), peers).verdict) << "a verdict is found once";
}

TEST_F(FailureDetectorTest, WhoDiesLaterDidNotBegin) {
  peer(3).dead = true;
  peer(3).lost_ns = after(1);
  peer(1).dead = true;
  peer(1).lost_ns = after(1.5);
  const Verdict verdict = verdict_at(after(1.6));
  EXPECT_EQ(verdict.initiating, std::vector<int>{3});
  EXPECT_EQ(verdict.cascading, std::vector<int>{1});
  EXPECT_TRUE(contains(text(verdict, after(1.6)), {"initiating: rank 3; cascading: rank 1"}));
}

TEST_F(FailureDetectorTest, WhoDiesWhileTheFirstDeathSettlesDiedWithIt) {
  for (const auto& [rank, seconds] : {std::pair{3, 1.0}, {2, 1.05}}) {
    peer(rank).dead = true;
    peer(rank).lost_ns = after(seconds);
  }
  const Verdict verdict = verdict_at(after(1.3));
  EXPECT_EQ(verdict.initiating, (std::vector<int>{3, 2}));
  EXPECT_TRUE(verdict.cascading.empty());
}

TEST_F(FailureDetectorTest, LastRankSaysAtOnceThatAllOthersDied) {
  FailureDetector last{3, Limits::for_timeout(30)};
  for (int rank = 0; rank < 3; ++rank) {
    peer(rank).dead = true;
    peer(rank).lost_ns = after(1);
    EXPECT_EQ(last.look(after(1), peers).verdict.has_value(), rank == 2) << "others may be dying, too";
  }
  EXPECT_TRUE(last.speaks(after(1), peers));
}

TEST_F(FailureDetectorTest, SilentRankIsNamedWithinFiveSecondsAndLostAfterTheTimeout) {
  computes(2);
  hear_all_but({2}, after(2.9));
  EXPECT_TRUE(detector.look(after(2.9), peers).notices.empty());
  hear_all_but({2}, after(3.1));
  peer(2).state = 'T';
  EXPECT_TRUE(contains(notice_at(detector, after(3.1)),
                       {"rank 2 on node2 (pid 102) is silent for 3.1 s: it is stopped, kill -CONT 102"}));
  hear_all_but({2}, after(29.9));
  const auto later = detector.look(after(29.9), peers);
  EXPECT_TRUE(later.notices.empty() && !later.verdict) << "it is said once";
  hear_all_but({2}, after(30.1));
  const Verdict verdict = verdict_at(after(30.1));
  EXPECT_EQ(verdict.cause, Cause::kSilent);
  EXPECT_EQ(verdict.initiating, std::vector<int>{2});
}

TEST_F(FailureDetectorTest, SilentRankMayComeBack) {
  hear_all_but({2}, after(20));
  EXPECT_EQ(detector.look(after(20), peers).notices.size(), 1U);
  hear_all_but({}, after(21));
  EXPECT_TRUE(contains(notice_at(detector, after(21)), {"is back after 21.0 s; the run goes on"}));
}

TEST_F(FailureDetectorTest, DebuggerIsWaitedForWithoutEnd) {
  peer(2).state = 't';
  hear_all_but({2}, after(10'000));
  const auto findings = detector.look(after(10'000), peers);
  EXPECT_FALSE(findings.verdict);
  ASSERT_EQ(findings.notices.size(), 1U);
  EXPECT_TRUE(contains(findings.notices[0], {"a debugger holds it"}));
}

TEST_F(FailureDetectorTest, HostThatCannotBeReachedIsNamedAsAWhole) {
  hear_all_but({2, 3}, after(31));
  const Verdict verdict = verdict_at(after(31));
  EXPECT_EQ(verdict.initiating, (std::vector<int>{2, 3}));
  EXPECT_FALSE(verdict.cut_off);
  EXPECT_TRUE(
      contains(text(verdict, after(31)), {"node2 with all of ranks 2-3 cannot be reached for 31.0 s"}));
}

TEST_F(FailureDetectorTest, OnTheFarSideOfACutAllOfTheOthersAreNamed) {
  FailureDetector far{2, Limits::for_timeout(30)};
  peer(0).heard_ns = after(0);
  peer(1).heard_ns = after(0.4);  // heard a little longer, and so rank 2 is no speaker yet
  peer(3).heard_ns = after(3.2);
  EXPECT_TRUE(far.look(after(3.2), peers).notices.empty());
  peer(3).heard_ns = after(3.7);
  const auto notices = far.look(after(3.7), peers).notices;
  ASSERT_EQ(notices.size(), 2U);
  EXPECT_TRUE(contains(notices[0], {"rank 0 on node1 (pid 100) is silent for 3.7 s"}));
  EXPECT_TRUE(contains(notices[1], {"rank 1 on node1 (pid 101) is silent for 3.3 s"}));
  hear_all_but({}, after(4));
  EXPECT_EQ(far.look(after(4), peers).notices.size(), 2U) << "both are back";
}

TEST_F(FailureDetectorTest, WhoHearsNobodySaysSoOfItself) {
  FailureDetector alone{3, Limits::for_timeout(30)};
  hear_all_but({0, 1, 2}, after(3.1));
  EXPECT_TRUE(contains(notice_at(alone, after(3.1)),
                       {"rank 3 on node2 (pid 103) hears no other rank for 3.1 s: this host is cut off"}));
  EXPECT_TRUE(alone.look(after(3.6), peers).notices.empty()) << "it is said once";
  hear_all_but({}, after(5));
  EXPECT_TRUE(contains(notice_at(alone, after(5)), {"rank 3 on node2 hears the others again after 5.0 s"}));
}

TEST_F(FailureDetectorTest, OnlyOtherRankIsNamedWhereItIsSeenToBeStopped) {
  peers.resize(2);
  FailureDetector second{1, Limits::for_timeout(30)};
  peer(0).state = 'T';
  EXPECT_TRUE(contains(notice_at(second, after(3.1)),
                       {"rank 0 on node1 (pid 100) is silent for 3.1 s: it is stopped"}));
  EXPECT_FALSE(second.may_be_cut_off(after(31), peers)) << "nothing to wait for before it says the verdict";
}

TEST_F(FailureDetectorTest, WhoHearsNobodySaysThatItMayBeItself) {
  hear_all_but({1, 2, 3}, after(31));
  const auto verdict = detector.look(after(31), peers).verdict;
  ASSERT_TRUE(verdict && verdict->cut_off);
  EXPECT_TRUE(contains(text(*verdict, after(31)), {"rank 0 on node1 hears no other rank any more"}));
}

TEST_F(FailureDetectorTest, RankThatIsAliveAndDoesNotComeIsNamedAndThenLost) {
  computes(3);
  hear_all_but({}, after(4));
  EXPECT_TRUE(detector.look(after(4), peers).notices.empty());
  hear_all_but({}, after(5));
  EXPECT_TRUE(
      contains(notice_at(detector, after(5)),
               {"rank 3 on node2 (pid 103) is alive, but has been in step 100, computing for 5.0 s"}));
  hear_all_but({}, after(31));
  const Verdict verdict = verdict_at(after(31));
  EXPECT_EQ(verdict.cause, Cause::kStuck);
  EXPECT_EQ(verdict.initiating, std::vector<int>{3});
}

TEST_F(FailureDetectorTest, FirstStepsTeachAndAreNoStandstill) {
  computes(3);
  for (Peer& each : peers) each.where.step = 3;
  hear_all_but({}, after(31));
  EXPECT_FALSE(detector.look(after(31), peers).verdict);
}

TEST_F(FailureDetectorTest, RankInADebuggerMayStandStillWithoutEnd) {
  computes(3);
  peer(3).traced = true;  // and is alive: its watchdog runs
  hear_all_but({}, after(1000));
  const auto findings = detector.look(after(1000), peers);
  EXPECT_FALSE(findings.verdict);
  EXPECT_EQ(findings.notices.size(), 1U) << "it is said, and nothing is done";
  peer(3).traced = false;
  EXPECT_TRUE(detector.look(after(1000), peers).verdict);
}

TEST_F(FailureDetectorTest, WordsOfAWaitDecideNothing) {
  for (Peer& other : peers) put_text("words that a programmer has changed", other.where.place);
  put_text("other words", peer(1).where.place);
  hear_all_but({}, after(2.1));
  EXPECT_TRUE(detector.look(after(2.1), peers).verdict) << "all wait for all, in two places";
  FailureDetector other{0, Limits::for_timeout(30)};
  for (Peer& each : peers) each.where.waiting = Waiting::kForSome;
  put_text("the gradients' all-reduce", peer(1).where.place);
  EXPECT_FALSE(other.look(after(2.1), peers).verdict) << "ranks of groups wait in places of their own";
}

TEST_F(FailureDetectorTest, ARankThatAGroupWaitsForMayBeAheadInCollectives) {
  computes(3);
  peer(3).where.collective = 600;  // groups count their own
  hear_all_but({}, after(31));
  EXPECT_FALSE(detector.look(after(31), peers).verdict) << "all meet at 500, and it was there";
  peer(0).where.waiting = Waiting::kForSome;
  EXPECT_EQ(verdict_at(after(31)).initiating, std::vector<int>{3});
}

TEST_F(FailureDetectorTest, LongEvaluationIsNoStandstill) {
  computes(3);
  peer(3).where.phase = Phase::kEvaluating;
  hear_all_but({}, after(1000));
  const auto findings = detector.look(after(1000), peers);
  EXPECT_TRUE(findings.notices.empty() && !findings.verdict);
}

TEST_F(FailureDetectorTest, AndFromStepsForRanksThatWorkEquallyHardlyWait) {
  FailureDetector patient{0, Limits::for_timeout(100'000)};
  peer(0).where.waiting = Waiting::kNo;
  patient.look(after(1), peers);
  peer(0).where.step = 101;  // a step of 30 s
  patient.look(after(31), peers);
  for (Peer& other : peers) other.where = at("the gradients' all-reduce"), other.where.since_ns = after(31);
  for (Peer& other : peers) other.where.step = 101;
  computes(3);
  peer(3).where.since_ns = after(31);
  hear_all_but({}, after(31 + 1499));
  EXPECT_FALSE(patient.look(after(31 + 1499), peers).verdict);
  hear_all_but({}, after(31 + 1501));
  EXPECT_TRUE(patient.look(after(31 + 1501), peers).verdict) << "50 times the longest step";
}

TEST_F(FailureDetectorTest, DeadlineForStandstillLearnsFromWaitsThatEnded) {
  FailureDetector patient{0, Limits::for_timeout(100'000)};
  hear_all_but({}, after(20));
  patient.look(after(20), peers);  // a wait of 20 s
  for (Peer& other : peers) other.where.collective = 501, other.where.since_ns = after(20);
  computes(3);
  peer(3).where.collective = 500;
  peer(3).where.since_ns = after(20);
  hear_all_but({}, after(20 + 999));
  EXPECT_FALSE(patient.look(after(20 + 999), peers).verdict);
  hear_all_but({}, after(20 + 1001));
  EXPECT_TRUE(patient.look(after(20 + 1001), peers).verdict) << "50 times the longest wait";
}

TEST_F(FailureDetectorTest, OtherPlaceAtTheSameCollectiveIsOutOfStep) {
  peer(1).where = at("a barrier");
  peer(1).where.phase = Phase::kUpdating;
  hear_all_but({}, after(1.9));
  EXPECT_FALSE(detector.look(after(1.9), peers).verdict);
  hear_all_but({}, after(2.1));
  const Verdict verdict = verdict_at(after(2.1));
  EXPECT_EQ(verdict.cause, Cause::kOutOfStep);
  EXPECT_EQ(verdict.initiating, std::vector<int>{1});
}

TEST_F(FailureDetectorTest, OfTwoOutOfStepTheOneInItsSumsIsRight) {
  peers.resize(2);
  peer(0).where = at("a barrier");
  peer(0).where.phase = Phase::kUpdating;
  hear_all_but({}, after(3));
  EXPECT_EQ(verdict_at(after(3)).initiating, std::vector<int>{0});
}

TEST_F(FailureDetectorTest, OneSpeaksForAll) {
  EXPECT_TRUE(FailureDetector(0, Limits{}).speaks(kStart, peers));
  EXPECT_FALSE(FailureDetector(1, Limits{}).speaks(kStart, peers));
  peer(0).dead = true;
  EXPECT_TRUE(FailureDetector(1, Limits{}).speaks(kStart, peers));
  peer(1).leaving = true;
  peer(1).farewell = {.code = 71, .because = 0, .spoken = false};
  EXPECT_FALSE(FailureDetector(2, Limits{}).speaks(kStart, peers))
      << "who leaves because of another speaks first";
}

TEST_F(FailureDetectorTest, WhatAnotherHasSaidIsNotSaidAgain) {
  peer(1).leaving = true;
  peer(1).farewell = {.code = 71, .because = 2, .spoken = true};
  const auto findings = detector.look(after(0.1), peers);
  EXPECT_TRUE(findings.adopted && !findings.verdict && findings.notices.empty());
}

TEST_F(FailureDetectorTest, WhoLeavesForReasonsOfItsOwnIsNoRiddle) {
  peer(1).leaving = true;
  peer(1).dead = true;
  peer(1).farewell = {.code = 74, .because = -1, .spoken = true};
  hear_all_but({1}, after(2));
  EXPECT_FALSE(detector.look(after(2), peers).adopted);
  hear_all_but({1}, after(4));
  const auto findings = detector.look(after(4), peers);
  EXPECT_TRUE(findings.adopted && !findings.verdict)
      << "the launcher did not end the job: all leave, without a word";
}

TEST_F(FailureDetectorTest, AllInOnePlaceWithoutMessagesIsTheNetworkOfMpi) {
  hear_all_but({}, after(40));
  const auto verdict = detector.find_overdue(after(40), peers);
  EXPECT_EQ(verdict.cause, Cause::kNetwork);
  EXPECT_TRUE(contains(text(verdict, after(40)), {"all 4 ranks wait, and"}));
}

}  // namespace
}  // namespace lockstep::watchdog
