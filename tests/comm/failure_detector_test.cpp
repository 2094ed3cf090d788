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
/// All ranks at first, as a verdict tells it.
const std::string kInSums =
    "step 100, reducing gradients, bucket 2, waiting in the gradients' all-reduce (collective 500)";

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
  EXPECT_EQ(text(verdict, after(1.2)),
            "verdict: rank 2 on node2 (pid 102) died: its process is gone; last seen in " + kInSums +
                ", 1.2 s ago\n  initiating: rank 2\n  ranks 0-1, 3: " + kInSums +
                ", for 1.2 s\n  try: see what it said last, and dmesg on node2 (out of memory?); start it "
                "again\n");
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
  EXPECT_TRUE(
      contains(text(verdict, after(1.6)), {"\n  initiating: rank 3; cascading: rank 1\n  ranks 0, 2: "}));
}

TEST_F(FailureDetectorTest, WhoDiesWhileTheFirstDeathSettlesDiedWithIt) {
  for (const auto& [rank, seconds] : {std::pair{3, 1.0}, {2, 1.05}}) {
    peer(rank).dead = true;
    peer(rank).lost_ns = after(seconds);
  }
  const Verdict verdict = verdict_at(after(1.3));
  EXPECT_EQ(verdict.initiating, (std::vector<int>{3, 2}));
  EXPECT_TRUE(verdict.cascading.empty());
  EXPECT_TRUE(text(verdict, after(1.3))
                  .starts_with("verdict: ranks 3, 2 on node2: the first, rank 3 on node2 (pid 103) died: its "
                               "process is gone; last seen in " +
                               kInSums + ", 1.3 s ago\n  initiating: ranks 3, 2\n"));
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
  EXPECT_EQ(
      notice_at(detector, after(3.1)),
      "rank 2 on node2 (pid 102) is silent for 3.1 s: it is stopped, kill -CONT 102 lets it go on; last "
      "seen in step 100, computing, 3.1 s ago. The others wait, until 30 s (the timeout) are over");
  hear_all_but({2}, after(29.9));
  const auto later = detector.look(after(29.9), peers);
  EXPECT_TRUE(later.notices.empty() && !later.verdict) << "it is said once";
  hear_all_but({2}, after(30.1));
  const Verdict verdict = verdict_at(after(30.1));
  EXPECT_EQ(verdict.cause, Cause::kSilent);
  EXPECT_EQ(verdict.initiating, std::vector<int>{2});
  EXPECT_FALSE(verdict.cut_off);
  const std::string seen =
      "; last seen in step 100, computing, 30.1 s ago\n  initiating: rank 2\n  ranks 0-1, 3: " + kInSums +
      ", for 30.1 s\n  try: ";
  const std::string silent = "verdict: rank 2 on node2 (pid 102) has given no sign of life for 30.1 s";
  EXPECT_EQ(text(verdict, after(30.1)),
            silent + ": it is stopped" + seen +
                "kill -CONT 102 on node2 would have let it go on; start it again\n");
  peer(2).state = 'S';
  EXPECT_EQ(text(verdict, after(30.1)),
            silent + seen +
                "look whether node2 is up and can be reached (ping, dmesg, a suspended "
                "machine); start it again\n");
}

TEST_F(FailureDetectorTest, SilentRankMayComeBack) {
  peer(2).device = "cuda:1";
  hear_all_but({2}, after(20));
  EXPECT_EQ(notice_at(detector, after(20)),
            "rank 2 on node2 (pid 102, cuda:1) is silent for 20.0 s; last seen in " + kInSums +
                ", 20.0 s ago. The others wait, until 30 s (the timeout) are over");
  hear_all_but({}, after(21));
  EXPECT_EQ(notice_at(detector, after(21)),
            "rank 2 on node2 (pid 102, cuda:1) is back after 21.0 s; the run goes on");
  EXPECT_TRUE(detector.look(after(21), peers).notices.empty()) << "it is said once";
}

TEST_F(FailureDetectorTest, DebuggerIsWaitedForWithoutEnd) {
  peer(2).state = 't';
  hear_all_but({2}, after(10'000));
  const auto findings = detector.look(after(10'000), peers);
  EXPECT_FALSE(findings.verdict);
  ASSERT_EQ(findings.notices.size(), 1U);
  EXPECT_TRUE(contains(findings.notices[0],
                       {" s: a debugger holds it, and all wait as long as that takes; last seen in "}));
}

TEST_F(FailureDetectorTest, HostThatCannotBeReachedIsNamedAsAWhole) {
  hear_all_but({2, 3}, after(31));
  const Verdict verdict = verdict_at(after(31));
  EXPECT_EQ(verdict.initiating, (std::vector<int>{2, 3}));
  EXPECT_FALSE(verdict.cut_off);
  EXPECT_TRUE(
      text(verdict, after(31))
          .starts_with("verdict: node2 with all of ranks 2-3 cannot be reached for 31.0 s; last seen in " +
                       kInSums + ", 31.0 s ago\n  initiating: ranks 2-3\n  ranks 0-1: "));
}

TEST_F(FailureDetectorTest, PartsOfHostsThatCannotBeReachedAreNamedByRank) {
  hear_all_but({1, 2}, after(31));
  const Verdict verdict = verdict_at(after(31));
  EXPECT_FALSE(verdict.cut_off);
  EXPECT_TRUE(
      contains(text(verdict, after(31)),
               {"verdict: ranks 1-2 on node1, node2: the first, rank 1 on node1 (pid 101) has given no",
                "  try: look whether node1, node2 is up"}));
}

TEST_F(FailureDetectorTest, OnlyOtherRankThatIsSilentIsNamedAndNotTheNetwork) {
  peers.resize(2);
  hear_all_but({1}, after(31));
  EXPECT_FALSE(verdict_at(after(31)).cut_off);
  EXPECT_FALSE(detector.find_overdue(after(31), peers).cut_off);
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
  EXPECT_EQ(
      notice_at(alone, after(3.1)),
      "rank 3 on node2 (pid 103) hears no other rank for 3.1 s: this host is cut off, or all others are "
      "gone. It waits, until 30 s (the timeout) are over");
  EXPECT_TRUE(alone.look(after(3.6), peers).notices.empty()) << "it is said once";
  hear_all_but({}, after(5));
  EXPECT_EQ(notice_at(alone, after(5)),
            "rank 3 on node2 hears the others again after 5.0 s; the run goes on");
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
  hear_all_but({1, 2, 3}, after(3.1));
  EXPECT_EQ(detector.look(after(3.1), peers).notices.size(), 3U)
      << "rank 0 is with the launcher and names them";
  EXPECT_TRUE(detector.find_overdue(after(3.1), peers).cut_off);
  hear_all_but({1, 2, 3}, after(31));
  const auto verdict = detector.look(after(31), peers).verdict;
  ASSERT_TRUE(verdict && verdict->cut_off);
  EXPECT_EQ(text(*verdict, after(31)),
            "verdict: rank 0 on node1 hears no other rank any more, for 31.0 s: this host is cut off, or all "
            "others are gone\n  rank 0: " +
                kInSums +
                ", for 31.0 s\n  try: look whether node1, node2 is up and can be reached (ping, dmesg, a "
                "suspended machine); start it again\n");
}

TEST_F(FailureDetectorTest, RankThatIsAliveAndDoesNotComeIsNamedAndThenLost) {
  computes(3);
  hear_all_but({}, after(4));
  EXPECT_TRUE(detector.look(after(4), peers).notices.empty());
  hear_all_but({}, after(5));
  EXPECT_EQ(
      notice_at(detector, after(5)),
      "rank 3 on node2 (pid 103) is alive, but has been in step 100, computing for 5.0 s; the others wait "
      "for it");
  hear_all_but({}, after(31));
  const Verdict verdict = verdict_at(after(31));
  EXPECT_EQ(verdict.cause, Cause::kStuck);
  EXPECT_EQ(verdict.initiating, std::vector<int>{3});
  EXPECT_EQ(
      text(verdict, after(31)),
      "verdict: rank 3 on node2 (pid 103) is alive, but has been at the same place for 31.0 s; last seen in "
      "step 100, computing\n  initiating: rank 3\n  ranks 0-2: " +
          kInSums +
          ", for 31.0 s\n  try: gdb -p 103 on node2, thread apply all bt; a disk that hangs; if it is only "
          "slow, raise the timeout; start it again\n");
}

TEST_F(FailureDetectorTest, FirstStepsTeachAndAreNoStandstill) {
  computes(3);
  for (const std::int64_t step : {19, 20}) {
    for (Peer& each : peers) each.where.step = step;
    hear_all_but({}, after(31));
    EXPECT_EQ(detector.look(after(31), peers).verdict.has_value(), step == 20) << step;
  }
}

TEST_F(FailureDetectorTest, OnlyARankInAStepStandsStill) {
  computes(3);
  hear_all_but({}, after(31));
  for (int phase = 0; phase < kPhases; ++phase) {
    peer(3).where.phase = static_cast<Phase>(phase);
    const bool in_step =
        phase >= static_cast<int>(Phase::kComputing) && phase <= static_cast<int>(Phase::kUpdating);
    FailureDetector by{0, Limits::for_timeout(30)};
    EXPECT_EQ(by.look(after(31), peers).verdict.has_value(), in_step) << phase_name(peer(3).where.phase);
  }
}

/// A notice waits for 10 times the longest wait so far.
TEST_F(FailureDetectorTest, ARankIsNamedLaterWhereWaitsAreLong) {
  FailureDetector patient{0, Limits::for_timeout(100'000)};
  hear_all_but({}, after(2));
  patient.look(after(2), peers);  // a wait of 2 s
  for (Peer& other : peers) other.where.collective = 501, other.where.since_ns = after(2);
  computes(3);
  peer(3).where.since_ns = after(2);
  for (const double seconds : {21.9, 22.1}) {
    hear_all_but({}, after(seconds));
    EXPECT_EQ(patient.look(after(seconds), peers).notices.size(), seconds < 22 ? 0U : 1U) << seconds;
  }
}

TEST(LimitsTest, AreNeverLongerThanTheTimeout) {
  const auto of = [](double timeout) {
    const Limits limits = Limits::for_timeout(timeout);
    return std::tuple(limits.timeout_seconds, limits.silent_seconds, limits.least_stuck_seconds);
  };
  EXPECT_EQ(of(4), std::tuple(4.0, 2.0, 4.0));
  EXPECT_EQ(of(50), std::tuple(50.0, 3.0, 50.0));
  EXPECT_EQ(of(300), std::tuple(300.0, 3.0, 60.0));
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
  EXPECT_EQ(
      text(verdict, after(2.1)),
      "verdict: rank 1 on node1 (pid 101) is out of step: it waits for something else than the others; last "
      "seen in step 100, updating weights, bucket 2, waiting in a barrier (collective 500)\n  initiating: "
      "rank 1\n  ranks 0, 2-3: " +
          kInSums +
          ", for 2.1 s\n  try: this is a fault of the program or of that machine: keep the run directory's "
          "log/ and report it; start it again\n");
  EXPECT_EQ(detector.find_overdue(after(2.1), peers).cause, Cause::kOutOfStep);
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
  hear_all_but({1}, after(2.9));
  EXPECT_FALSE(detector.look(after(2.9), peers).adopted);
  hear_all_but({1}, after(4));
  const auto findings = detector.look(after(4), peers);
  EXPECT_TRUE(findings.adopted && !findings.verdict)
      << "the launcher did not end the job: all leave, without a word";
}

TEST_F(FailureDetectorTest, AllInOnePlaceWithoutMessagesIsTheNetworkOfMpi) {
  hear_all_but({}, after(40));
  const auto verdict = detector.find_overdue(after(40), peers);
  EXPECT_EQ(verdict.cause, Cause::kNetwork);
  EXPECT_EQ(text(verdict, after(40)),
            "verdict: all 4 ranks wait, and their messages do not come\n  ranks 0-3: " + kInSums +
                ", for 40.0 s\n  try: the watchdogs reach each other, MPI does not: check its interfaces "
                "(btl_tcp_if_include) and firewalls; if messages are only slow, raise the timeout; start it "
                "again\n");
}

TEST_F(FailureDetectorTest, WhoCannotGoOnBlamesTheDeadThenTheSilentThenThoseBehind) {
  const auto expect = [this](Cause cause, int rank) {
    const Verdict verdict = detector.find_overdue(after(3.1), peers);
    EXPECT_EQ(verdict.cause, cause);
    EXPECT_EQ(verdict.initiating, std::vector<int>{rank});
  };
  hear_all_but({}, after(3.1));
  computes(3);
  expect(Cause::kStuck, 3);
  peer(2).heard_ns = kStart;
  expect(Cause::kSilent, 2);
  peer(1).dead = true;
  peer(1).lost_ns = after(1);
  expect(Cause::kDied, 1);
}

TEST(RankStatusTextTest, SaysOnlyWhatIsKnown) {
  RankStatus where;
  EXPECT_EQ(describe(where), "starting");
  where.step = 1;
  where.phase = Phase::kComputing;
  where.bucket = 0;
  EXPECT_EQ(describe(where), "step 1, computing, bucket 1");
}

}  // namespace
}  // namespace lockstep::watchdog
