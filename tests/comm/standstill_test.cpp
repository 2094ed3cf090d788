// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks that are alive and do not come, or wait for something else than the others.
#include "tests/comm/failure_detector_fixture.hpp"

namespace lockstep::watchdog {
namespace {

TEST_F(FailureDetectorTest, RankThatIsAliveAndDoesNotComeIsNamedAndThenLost) {
  computes(3);
  EXPECT_TRUE(look(4).notices.empty());
  EXPECT_EQ(
      notice_at(4.5),
      "rank 3 on node2 (pid 103) is alive, but has been in step 100, computing for 4.5 s; the others wait "
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

TEST_F(FailureDetectorTest, StepsOfEarlierStartsTeachNothing) {
  computes(3);
  for (const std::int64_t before : {81, 80}) {
    peer(0).where.steps_before = before;
    EXPECT_EQ(look(31).verdict.has_value(), before == 80) << before;
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
    return std::tuple(limits.timeout_seconds, limits.silent_seconds, limits.least_stuck_seconds,
                      limits.beat_interval().count());
  };
  EXPECT_EQ(of(0.1), std::tuple(0.1, 0.05, 0.1, 10));
  EXPECT_EQ(of(4), std::tuple(4.0, 2.0, 4.0, 333));
  EXPECT_EQ(of(5.998), std::tuple(5.998, 2.999, 5.998, 499));
  EXPECT_EQ(of(50), std::tuple(50.0, 3.0, 50.0, 500));
  EXPECT_EQ(of(300), std::tuple(300.0, 3.0, 60.0, 500));
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
  peer(0).where.step = 0;  // the start counts as one, too: of 30 s
  look(1);
  peer(0).where.step = 101;
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
  EXPECT_EQ(detector.find_overdue(after(2), peers).cause, Cause::kOutOfStep);
  peer(3).where = at("a");
  EXPECT_EQ(detector.find_overdue(after(2.1), peers).initiating, (std::vector<int>{1, 3}));
  peer(0).where = peer(3).where = peer(1).where;
  EXPECT_EQ(detector.find_overdue(after(2.1), peers).initiating, std::vector<int>{2}) << "the many are right";
}

/// As behind a firewall. Nothing is said of where they are, nor that they wait.
TEST_F(FailureDetectorTest, RanksThatNoWatchdogReachesOrThatHaveLeftDoNotWait) {
  for (Peer& each : peers) each.heard_ns = after(31);
  for (const int rank : {2, 3}) {
    peer(rank).watched = false;
    peer(rank).where = RankStatus{.since_ns = kStart};
  }
  const auto overdue = [this] { return text(detector.find_overdue(after(31), peers), 31); };
  const std::string unknown = "  ranks 2-3: not reached by the watchdog of rank 0\n",
                    in_sums = ": " + kInSums;
  EXPECT_EQ(
      overdue(),
      "verdict: messages to ranks 0-1 do not come\n" + unknown + "  ranks 0-1" + in_sums +
          ", for 31.0 s\n  try: see what the other ranks said last, and whether their hosts are up; if MPI "
          "does not reach them: check its interfaces (btl_tcp_if_include) and firewalls; if messages are "
          "only slow, raise the timeout; start it again\n");
  peer(1).leaving = true;
  peer(1).farewell = {.code = 74, .because = -1, .spoken = true};
  EXPECT_TRUE(
      overdue().starts_with("verdict: messages to rank 0 do not come\n  rank 1: left with exit code 74, "
                            "and said why\n" +
                            unknown + "  rank 0" + in_sums))
      << overdue();
  peer(1).leaving = false;
  dies(1, 30);
  peer(2).ended = true;
  EXPECT_TRUE(
      overdue().find("\n  initiating: rank 1\n  rank 2: ended\n  rank 3: not reached by the watchdog of "
                     "rank 0\n  rank 0" +
                     in_sums) != std::string::npos)
      << overdue();
}

TEST_F(FailureDetectorTest, OfTwoOutOfStepTheOneInItsSumsIsRight) {
  peers.resize(2);
  peer(0).where = at("a barrier");
  peer(0).where.phase = Phase::kUpdating;
  EXPECT_EQ(verdict_at(3).initiating, std::vector<int>{0});
  peer(1).where.phase = Phase::kUpdating;
  EXPECT_EQ(detector.find_overdue(after(3), peers).initiating, std::vector<int>{1}) << "or rank 0";
}

}  // namespace
}  // namespace lockstep::watchdog
