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

TEST_F(FailureDetectorTest, NothingIsSaidOfRanksThatLive) {
  for (int half = 0; half < 200; ++half) {
    const auto findings = look(half * 0.5);
    EXPECT_TRUE(findings.notices.empty() && !findings.verdict) << half;
  }
}

TEST_F(FailureDetectorTest, DeathIsJudgedWhenItHasSettled) {
  dies(2, 1);
  EXPECT_FALSE(look(1.1, {2}).verdict);
  const Verdict verdict = verdict_at(1.2, {2});
  EXPECT_EQ(verdict.cause, Cause::kDied);
  EXPECT_EQ(verdict.initiating, std::vector<int>{2});
  EXPECT_EQ(text(verdict, 1.2),
            "verdict: rank 2 on node2 (pid 102) died: its process is gone; last seen in " + kInSums +
                ", 1.2 s ago\n  initiating: rank 2\n  ranks 0-1, 3: " + kInSums +
                ", for 1.2 s\n  try: see what it said last, and dmesg on node2 (out of memory?); start it "
                "again\n");
  EXPECT_FALSE(look(2, {2}).verdict) << "a verdict is found once";
}

TEST_F(FailureDetectorTest, WhoDiesLaterDidNotBegin) {
  dies(3, 1);
  dies(1, 1.5);
  const Verdict verdict = verdict_at(1.6, {1, 3});
  EXPECT_EQ(verdict.initiating, std::vector<int>{3});
  EXPECT_EQ(verdict.cascading, std::vector<int>{1});
  EXPECT_TRUE(contains(text(verdict, 1.6), {"\n  initiating: rank 3; cascading: rank 1\n  ranks 0, 2: "}));
}

TEST_F(FailureDetectorTest, WhoDiesWhileTheFirstDeathSettlesDiedWithIt) {
  dies(3, 1);
  dies(2, 1.05);
  const Verdict verdict = verdict_at(1.3, {2, 3});
  EXPECT_EQ(verdict.initiating, (std::vector<int>{3, 2}));
  EXPECT_TRUE(verdict.cascading.empty());
  EXPECT_TRUE(text(verdict, 1.3)
                  .starts_with("verdict: ranks 3, 2 on node2: the first, rank 3 on node2 (pid 103) died: its "
                               "process is gone; last seen in " +
                               kInSums + ", 1.3 s ago\n  initiating: ranks 3, 2\n"));
}

TEST_F(FailureDetectorTest, LastRankSaysAtOnceThatAllOthersDied) {
  watch_as(3);
  for (int rank = 0; rank < 3; ++rank) {
    dies(rank, 1);
    EXPECT_EQ(look(1, {0, 1, 2}).verdict.has_value(), rank == 2) << "others may be dying, too";
  }
  EXPECT_TRUE(detector.speaks(after(1), peers));
}

TEST_F(FailureDetectorTest, SilentRankIsNamedWithinFiveSecondsAndLostAfterTheTimeout) {
  computes(2);
  EXPECT_TRUE(look(2.9, {2}).notices.empty());
  peer(2).state = 'T';
  EXPECT_EQ(
      notice_at(3.1, {2}),
      "rank 2 on node2 (pid 102) is silent for 3.1 s: it is stopped, kill -CONT 102 lets it go on; last "
      "seen in step 100, computing, 3.1 s ago. The others wait, until 30 s (the timeout) are over");
  const auto later = look(29.9, {2});
  EXPECT_TRUE(later.notices.empty() && !later.verdict) << "it is said once";
  const Verdict verdict = verdict_at(30.1, {2});
  EXPECT_EQ(verdict.cause, Cause::kSilent);
  EXPECT_EQ(verdict.initiating, std::vector<int>{2});
  EXPECT_FALSE(verdict.cut_off);
  const std::string seen =
      "; last seen in step 100, computing, 30.1 s ago\n  initiating: rank 2\n  ranks 0-1, 3: " + kInSums +
      ", for 30.1 s\n  try: ";
  const std::string silent = "verdict: rank 2 on node2 (pid 102) has given no sign of life for 30.1 s";
  EXPECT_EQ(text(verdict, 30.1), silent + ": it is stopped" + seen +
                                     "kill -CONT 102 on node2 would have let it go on; start it again\n");
  peer(2).state = 'S';
  EXPECT_EQ(text(verdict, 30.1), silent + seen +
                                     "look whether node2 is up and can be reached (ping, dmesg, a suspended "
                                     "machine); start it again\n");
}

TEST_F(FailureDetectorTest, SilentRankMayComeBack) {
  peer(2).device = "cuda:1";
  EXPECT_EQ(notice_at(20, {2}), "rank 2 on node2 (pid 102, cuda:1) is silent for 20.0 s; last seen in " +
                                    kInSums +
                                    ", 20.0 s ago. The others wait, until 30 s (the timeout) are over");
  EXPECT_EQ(notice_at(21), "rank 2 on node2 (pid 102, cuda:1) is back after 21.0 s; the run goes on");
  EXPECT_TRUE(look(21).notices.empty()) << "it is said once";
}

TEST_F(FailureDetectorTest, OneThatIsSilentAndThenLeavesIsNotBack) {
  EXPECT_EQ(look(20, {2}).notices.size(), 1U);
  peer(2).leaving = true;
  peer(2).farewell = {.code = 74, .because = -1, .spoken = true};
  EXPECT_TRUE(look(21).notices.empty());
}

TEST_F(FailureDetectorTest, RankThatHasSaidGoodbyeIsMissedByNobody) {
  computes(1);
  peer(1).watched = false;
  const auto findings = look(1000, {1});
  EXPECT_TRUE(findings.notices.empty() && !findings.verdict);
  EXPECT_EQ(detector.find_overdue(after(1000), peers).cause, Cause::kNetwork) << "nor waited for";
  peer(3).where = at("a barrier");
  EXPECT_EQ(verdict_at(1000, {1}).initiating, std::vector<int>{3}) << "the others are compared without it";
  for (Peer& each : peers) each.watched = false;
  watch_as(3);
  EXPECT_TRUE(look(1000, {0, 1, 2}).notices.empty()) << "the last one is not cut off";
}

TEST_F(FailureDetectorTest, DebuggerIsWaitedForWithoutEnd) {
  peer(2).state = 't';
  const auto findings = look(10'000, {2});
  EXPECT_FALSE(findings.verdict);
  ASSERT_EQ(findings.notices.size(), 1U);
  EXPECT_TRUE(contains(findings.notices[0],
                       {" s: a debugger holds it, and all wait as long as that takes; last seen in "}));
}

TEST_F(FailureDetectorTest, HostThatCannotBeReachedIsNamedAsAWhole) {
  const Verdict verdict = verdict_at(31, {2, 3});
  EXPECT_EQ(verdict.initiating, (std::vector<int>{2, 3}));
  EXPECT_FALSE(verdict.cut_off);
  EXPECT_TRUE(
      text(verdict, 31)
          .starts_with("verdict: node2 with all of ranks 2-3 cannot be reached for 31.0 s; last seen in " +
                       kInSums + ", 31.0 s ago\n  initiating: ranks 2-3\n  ranks 0-1: "));
}

TEST_F(FailureDetectorTest, PartsOfHostsThatCannotBeReachedAreNamedByRank) {
  const Verdict verdict = verdict_at(31, {1, 2});
  EXPECT_FALSE(verdict.cut_off);
  EXPECT_TRUE(
      contains(text(verdict, 31),
               {"verdict: ranks 1-2 on node1, node2: the first, rank 1 on node1 (pid 101) has given no",
                "  try: look whether node1, node2 is up"}));
}

TEST_F(FailureDetectorTest, OnlyOtherRankThatIsSilentIsNamedAndNotTheNetwork) {
  peers.resize(2);
  EXPECT_FALSE(verdict_at(31, {1}).cut_off);
  EXPECT_FALSE(detector.find_overdue(after(31), peers).cut_off);
}

TEST_F(FailureDetectorTest, OnTheFarSideOfACutAllOfTheOthersAreNamed) {
  watch_as(2);
  peer(1).heard_ns = after(0.4);  // heard a little longer than rank 0, and so rank 2 is no speaker yet
  EXPECT_TRUE(look(3.2, {0, 1}).notices.empty());
  const auto notices = look(3.7, {0, 1}).notices;
  ASSERT_EQ(notices.size(), 2U);
  EXPECT_TRUE(contains(notices[0], {"rank 0 on node1 (pid 100) is silent for 3.7 s"}));
  EXPECT_TRUE(contains(notices[1], {"rank 1 on node1 (pid 101) is silent for 3.3 s"}));
  EXPECT_EQ(look(4).notices.size(), 2U) << "both are back";
}

TEST_F(FailureDetectorTest, WhoHearsNobodySaysSoOfItself) {
  watch_as(3);
  peer(1).heard_ns = after(0.4);  // the last one
  EXPECT_EQ(
      notice_at(3.5, {0, 1, 2}),
      "rank 3 on node2 (pid 103) hears no other rank for 3.1 s: this host is cut off, or all others are "
      "gone. It waits, until 30 s (the timeout) are over");
  EXPECT_TRUE(look(3.6, {0, 1, 2}).notices.empty()) << "it is said once";
  EXPECT_EQ(notice_at(5), "rank 3 on node2 hears the others again after 4.6 s; the run goes on");
}

TEST_F(FailureDetectorTest, OnlyOtherRankIsNamedWhereItIsSeenToBeStopped) {
  peers.resize(2);
  watch_as(1);
  peer(0).state = 'T';
  EXPECT_TRUE(
      contains(notice_at(3.1, {0}), {"rank 0 on node1 (pid 100) is silent for 3.1 s: it is stopped"}));
  EXPECT_FALSE(detector.may_be_cut_off(after(31), peers)) << "nothing to wait for before it says the verdict";
}

TEST_F(FailureDetectorTest, WhoHearsNobodySaysThatItMayBeItself) {
  peer(2).heard_ns = after(0.09);  // the last one
  EXPECT_EQ(look(3.1, {1, 2, 3}).notices.size(), 3U) << "rank 0 is with the launcher and names them";
  EXPECT_TRUE(detector.find_overdue(after(3.1), peers).cut_off);
  const Verdict verdict = verdict_at(31, {1, 2, 3});
  EXPECT_TRUE(verdict.cut_off);
  EXPECT_EQ(text(verdict, 31),
            "verdict: rank 0 on node1 hears no other rank any more, for 30.9 s: this host is cut off, or all "
            "others are gone\n  rank 0: " +
                kInSums +
                ", for 31.0 s\n  try: look whether node1, node2 is up and can be reached (ping, dmesg, a "
                "suspended machine); start it again\n");
}

TEST_F(FailureDetectorTest, RankThatIsAliveAndDoesNotComeIsNamedAndThenLost) {
  computes(3);
  EXPECT_TRUE(look(4).notices.empty());
  EXPECT_EQ(
      notice_at(5),
      "rank 3 on node2 (pid 103) is alive, but has been in step 100, computing for 5.0 s; the others wait "
      "for it");
  EXPECT_TRUE(look(6).notices.empty()) << "it is said once";
  const Verdict verdict = verdict_at(31);
  EXPECT_EQ(verdict.cause, Cause::kStuck);
  EXPECT_EQ(verdict.initiating, std::vector<int>{3});
  EXPECT_EQ(
      text(verdict, 31),
      "verdict: rank 3 on node2 (pid 103) is alive, but has been at the same place for 31.0 s; last seen in "
      "step 100, computing\n  initiating: rank 3\n  ranks 0-2: " +
          kInSums +
          ", for 31.0 s\n  try: gdb -p 103 on node2, thread apply all bt; a disk that hangs; if it is only "
          "slow, raise the timeout; start it again\n");
  watch_as(1);
  EXPECT_TRUE(look(29).notices.empty()) << "rank 0 says it";
}

TEST_F(FailureDetectorTest, NobodyIsLateWhoHasJustMovedOrForOneThatDoesNotWaitYet) {
  const auto expect_quiet = [this](const char* why) {
    const auto findings = look(31);
    EXPECT_TRUE(findings.notices.empty() && !findings.verdict) << why;
  };
  computes(3);
  peer(3).where.since_ns = after(30);
  expect_quiet("it has moved");
  peer(3).where.since_ns = kStart;
  peer(0).where.since_ns = after(30);
  expect_quiet("rank 0 has just come");
  computes(0);
  expect_quiet("rank 0 does not wait");
}

TEST_F(FailureDetectorTest, FirstStepsTeachAndAreNoStandstill) {
  computes(3);
  for (const std::int64_t step : {19, 20}) {
    for (Peer& each : peers) each.where.step = step;
    EXPECT_EQ(look(31).verdict.has_value(), step == 20) << step;
  }
}

TEST_F(FailureDetectorTest, OnlyARankInAStepStandsStill) {
  computes(3);
  for (int phase = 0; phase < kPhases; ++phase) {
    peer(3).where.phase = static_cast<Phase>(phase);
    const bool in_step =
        phase >= static_cast<int>(Phase::kComputing) && phase <= static_cast<int>(Phase::kUpdating);
    watch_as(0);
    const auto findings = look(1000);
    EXPECT_EQ(findings.verdict.has_value(), in_step) << phase_name(peer(3).where.phase);
    EXPECT_TRUE(findings.notices.empty()) << phase_name(peer(3).where.phase);
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
  const auto findings = look(1000);
  EXPECT_FALSE(findings.verdict);
  EXPECT_EQ(findings.notices.size(), 1U) << "it is said, and nothing is done";
  peer(3).traced = false;
  EXPECT_TRUE(look(1000).verdict);
}

TEST_F(FailureDetectorTest, WordsOfAWaitDecideNothing) {
  for (Peer& other : peers) put_text("words that a programmer has changed", other.where.place);
  put_text("other words", peer(1).where.place);
  EXPECT_TRUE(look(2.1).verdict) << "all wait for all, in two places";
  watch_as(0);
  for (Peer& each : peers) each.where.waiting = Waiting::kForSome;
  put_text("the gradients' all-reduce", peer(1).where.place);
  EXPECT_FALSE(look(2.1).verdict) << "ranks of groups wait in places of their own";
}

TEST_F(FailureDetectorTest, ARankThatAGroupWaitsForMayBeAheadInCollectives) {
  computes(3);
  for (const std::uint64_t collective : {500U, 600U}) {  // groups count their own
    peer(3).where.collective = collective;
    EXPECT_FALSE(look(31).verdict) << "all meet at 500, and it was there";
  }
  peer(0).where.waiting = Waiting::kForSome;
  EXPECT_EQ(verdict_at(31).initiating, std::vector<int>{3});
}

/// Its connection is there, and its first beat is still on the way.
TEST_F(FailureDetectorTest, ARankThatHasSaidNothingYetIsBehindTheFirstCollective) {
  for (Peer& each : peers) each.where.collective = 1;
  peer(3).where = {};
  const Verdict verdict = detector.find_overdue(after(2), peers);
  EXPECT_EQ(verdict.cause, Cause::kStuck);
  EXPECT_EQ(verdict.initiating, std::vector<int>{3});
}

/// Ten times the longest wait until it is named, fifty times until it is lost.
TEST_F(FailureDetectorTest, DeadlinesForStandstillLearnFromWaitsThatEnded) {
  watch_as(0, 100'000);
  look(20);  // a wait of 20 s
  for (Peer& other : peers) other.where.collective = 501, other.where.since_ns = after(20);
  computes(3);
  peer(3).where.since_ns = after(20);
  EXPECT_TRUE(look(20 + 199).notices.empty());
  EXPECT_EQ(look(20 + 201).notices.size(), 1U);
  EXPECT_FALSE(look(20 + 999).verdict);
  EXPECT_TRUE(look(20 + 1001).verdict);
}

TEST_F(FailureDetectorTest, AndFromStepsForRanksThatWorkEquallyHardlyWait) {
  watch_as(0, 100'000);
  peer(0).where.waiting = Waiting::kNo;
  look(1);
  peer(0).where.step = 101;  // a step of 30 s
  look(31);
  for (Peer& other : peers) {
    other.where = at("the gradients' all-reduce");
    other.where.since_ns = after(31);
    other.where.step = 101;
  }
  computes(3);
  peer(3).where.since_ns = after(31);
  EXPECT_FALSE(look(31 + 1499).verdict);
  EXPECT_TRUE(look(31 + 1501).verdict) << "50 times the longest step";
}

TEST_F(FailureDetectorTest, OtherPlaceAtTheSameCollectiveIsOutOfStep) {
  peer(1).where = at("a barrier");
  peer(1).where.phase = Phase::kUpdating;
  EXPECT_FALSE(look(1.9).verdict);
  peer(1).where.collective = 501;
  EXPECT_FALSE(look(2.1).verdict) << "it may only be ahead";
  peer(1).where.collective = 500;
  const Verdict verdict = verdict_at(2.1);
  EXPECT_EQ(verdict.cause, Cause::kOutOfStep);
  EXPECT_EQ(verdict.initiating, std::vector<int>{1});
  EXPECT_EQ(
      text(verdict, 2.1),
      "verdict: rank 1 on node1 (pid 101) is out of step: it waits for something else than the others; last "
      "seen in step 100, updating weights, bucket 2, waiting in a barrier (collective 500)\n  initiating: "
      "rank 1\n  ranks 0, 2-3: " +
          kInSums +
          ", for 2.1 s\n  try: this is a fault of the program or of that machine: keep the run directory's "
          "log/ and report it; start it again\n");
  EXPECT_EQ(detector.find_overdue(after(2.1), peers).cause, Cause::kOutOfStep);
  peer(3).where = at("a");
  EXPECT_EQ(detector.find_overdue(after(2.1), peers).initiating, (std::vector<int>{1, 3}));
}

TEST_F(FailureDetectorTest, OfTwoOutOfStepTheOneInItsSumsIsRight) {
  peers.resize(2);
  peer(0).where = at("a barrier");
  peer(0).where.phase = Phase::kUpdating;
  EXPECT_EQ(verdict_at(3).initiating, std::vector<int>{0});
  peer(1).where.phase = Phase::kUpdating;
  EXPECT_EQ(detector.find_overdue(after(3), peers).initiating, std::vector<int>{1}) << "or rank 0";
}

TEST_F(FailureDetectorTest, OneSpeaksForAll) {
  const auto speaks = [this](int rank) { return FailureDetector(rank, Limits{}).speaks(kStart, peers); };
  EXPECT_TRUE(speaks(0));
  EXPECT_FALSE(speaks(1));
  peer(0).dead = true;
  EXPECT_TRUE(speaks(1));
  peer(1).leaving = true;
  peer(1).farewell = {.code = 71, .because = 0, .spoken = false};
  EXPECT_FALSE(speaks(2)) << "who leaves because of another speaks first";
  peer(1).dead = true;
  EXPECT_TRUE(speaks(2)) << "as long as it lives";
  peer(1).dead = false;
  peer(1).farewell.because = -1;
  EXPECT_TRUE(speaks(2)) << "and no other";
}

TEST_F(FailureDetectorTest, WhatAnotherHasSaidIsNotSaidAgain) {
  peer(1).leaving = true;
  peer(1).farewell = {.code = 71, .because = 0, .spoken = true};
  const auto findings = look(0.1);
  EXPECT_TRUE(findings.adopted && !findings.verdict && findings.notices.empty());
}

TEST_F(FailureDetectorTest, WhoLeavesForReasonsOfItsOwnIsNoRiddle) {
  peer(1).leaving = true;
  peer(1).dead = true;
  peer(1).farewell = {.code = 74, .because = -1, .spoken = true};
  EXPECT_FALSE(look(2.9, {1}).adopted);
  const auto findings = look(4, {1});
  EXPECT_TRUE(findings.adopted && !findings.verdict)
      << "the launcher did not end the job: all leave, without a word";
}

TEST_F(FailureDetectorTest, AllInOnePlaceWithoutMessagesIsTheNetworkOfMpi) {
  const auto verdict = detector.find_overdue(after(2), peers);
  EXPECT_EQ(verdict.cause, Cause::kNetwork);
  EXPECT_EQ(text(verdict, 2),
            "verdict: all 4 ranks wait, and their messages do not come\n  ranks 0-3: " + kInSums +
                ", for 2.0 s\n  try: the watchdogs reach each other, MPI does not: check its interfaces "
                "(btl_tcp_if_include) and firewalls; if messages are only slow, raise the timeout; start it "
                "again\n");
}

TEST_F(FailureDetectorTest, WhoCannotGoOnBlamesTheDeadThenTheSilentThenThoseBehind) {
  const auto expect = [this](Cause cause, int rank) {
    const Verdict verdict = detector.find_overdue(after(3.1), peers);
    EXPECT_EQ(verdict.cause, cause);
    EXPECT_EQ(verdict.initiating, std::vector<int>{rank});
  };
  for (Peer& each : peers) each.heard_ns = after(3.1);
  computes(3);
  expect(Cause::kStuck, 3);
  peer(2).heard_ns = kStart;
  expect(Cause::kSilent, 2);
  dies(1, 1);
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
