// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Deaths and silence: verdicts from signs of life, their moments and words; the rank that says them.
#include "tests/comm/failure_detector_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::watchdog {
namespace {

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
  EXPECT_TRUE(contains(text(verdict, 0.06), {", 0.1 s ago\n"}));
  EXPECT_FALSE(contains(text(verdict, 0.05), {" ago"})) << "just now";
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
  EXPECT_TRUE(look(3, {2}).notices.empty());
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
  watch_as(0, 4);
  EXPECT_FALSE(look(4, {2}).verdict) << "not longer than the timeout";
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

TEST_F(FailureDetectorTest, RankThatIsSilentLongestBeganAndLaterOnesFollowed) {
  peer(1).heard_ns = after(25);
  const Verdict verdict = verdict_at(31, {1, 2});
  EXPECT_EQ(verdict.initiating, std::vector<int>{2});
  EXPECT_EQ(verdict.cascading, std::vector<int>{1});
  EXPECT_TRUE(contains(
      text(verdict, 31),
      {"verdict: rank 2 on node2 (pid 102) has given no sign of life for 31.0 s; last seen",
       "\n  initiating: rank 2; cascading: rank 1\n  ranks 0, 3: ", "  try: look whether node2 is up"}));
  const Verdict overdue = detector.find_overdue(after(31), peers);
  EXPECT_EQ(overdue.initiating, verdict.initiating);
  EXPECT_EQ(overdue.cascading, verdict.cascading);
}

TEST_F(FailureDetectorTest, RanksThatFallSilentWithinASecondBeganTogether) {
  peer(2).heard_ns = after(0.9);
  const Verdict verdict = verdict_at(31, {2, 3});
  EXPECT_EQ(verdict.initiating, (std::vector<int>{3, 2}));
  EXPECT_TRUE(contains(text(verdict, 31), {"node2 with all of ranks 2-3 cannot be reached for 31.0 s; last",
                                           "\n  initiating: ranks 3, 2\n"}));
  peer(2).heard_ns = after(1);
  EXPECT_EQ(detector.find_overdue(after(31), peers).cascading, std::vector<int>{2});
}

TEST_F(FailureDetectorTest, OnlyOtherRankThatIsSilentIsNamedAndNotTheNetwork) {
  peers.resize(3);
  EXPECT_TRUE(detector.find_overdue(after(31), peers).cut_off) << "of two others";
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
  EXPECT_TRUE(look(5.1).notices.empty()) << "so is this";
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
  EXPECT_FALSE(look(0.2).adopted) << "once";
}

TEST_F(FailureDetectorTest, WhoLeavesForReasonsOfItsOwnIsNoRiddle) {
  peer(1).leaving = true;
  peer(1).dead = true;
  peer(1).farewell = {.code = 74, .because = -1, .spoken = true};
  EXPECT_FALSE(look(3, {1}).adopted);
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
