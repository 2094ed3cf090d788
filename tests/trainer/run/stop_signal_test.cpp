// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/run/stop_signal.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/run/run_directory.hpp"

#include <unistd.h>

namespace lockstep {

namespace {

using Effect = StopRequests::Effect;

/// Verdicts of requests at these times, in seconds.
std::vector<Effect> verdicts_at(const std::vector<double>& seconds) {
  StopRequests requests;
  std::vector<Effect> verdicts;
  verdicts.reserve(seconds.size());
  for (const double second : seconds)
    verdicts.push_back(requests.add(1'000'000'000'000 + static_cast<std::int64_t>(second * 1e9)));
  return verdicts;
}

TEST(StopRequestsTest, TheFirstAsksForAStop) {
  EXPECT_EQ(verdicts_at({0}), (std::vector{Effect::kStop}));
}

TEST(StopRequestsTest, WhatComesWithinASecondIsTheSameRequest) {
  EXPECT_EQ(verdicts_at({0, 0, 0.3, 0.99}),
            (std::vector{Effect::kStop, Effect::kSame, Effect::kSame, Effect::kSame}));
}

TEST(StopRequestsTest, ASecondOneIsNotYetImpatience) {
  EXPECT_EQ(verdicts_at({0, 1.5}), (std::vector{Effect::kStop, Effect::kPatience}));
}

TEST(StopRequestsTest, TheThirdLeaves) {
  EXPECT_EQ(verdicts_at({0, 1.5, 3}), (std::vector{Effect::kStop, Effect::kPatience, Effect::kLeave}));
}

TEST(StopRequestsTest, TwinsCountOnce) {
  EXPECT_EQ(verdicts_at({0, 0.01, 1.5, 1.51, 2.4}),
            (std::vector{Effect::kStop, Effect::kSame, Effect::kPatience, Effect::kSame, Effect::kSame}));
}

TEST(StopRequestsTest, AnyLaterOneLeavesAfterTheGrace) {
  EXPECT_EQ(verdicts_at({0, 0.1, 5.1}), (std::vector{Effect::kStop, Effect::kSame, Effect::kLeave}));
}

TEST(StopRequestsTest, LimitsAreOfTheNextRequest) {
  EXPECT_EQ(verdicts_at({0, 1}), (std::vector{Effect::kStop, Effect::kPatience}));
  EXPECT_EQ(verdicts_at({0, 4.999}), (std::vector{Effect::kStop, Effect::kPatience}));
  EXPECT_EQ(verdicts_at({0, 5}), (std::vector{Effect::kStop, Effect::kLeave}));
}

TEST(StopRequestsTest, HammeringLeavesAfterTwoSeconds) {
  std::vector<double> four_a_second;
  for (int i = 0; i <= 8; ++i) four_a_second.push_back(0.25 * i);
  const auto verdicts = verdicts_at(four_a_second);
  EXPECT_EQ(verdicts[4], Effect::kPatience);
  EXPECT_EQ(verdicts[7], Effect::kSame);
  EXPECT_EQ(verdicts[8], Effect::kLeave);
}

/// In a process of its own, which a second request would end with 152.
TEST(StopSignalTest, TheLimitOnProcessorTimeIsOneRequestHoweverOftenItComes) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto body = [] {
    catch_stop_signals();
    std::raise(SIGXCPU);
    for (int again = 1; again <= 2; ++again) {  // each later than what counts as one with the one before
      ::usleep(1'050'000);
      std::raise(SIGXCPU);
    }
    std::_Exit(stop_signal() == SIGXCPU ? 0 : 1);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0),
              "^lockstep: SIGXCPU .the limit on processor time.*saving\n$");
}

using std::chrono::seconds;
using std::chrono::steady_clock;

std::int64_t unix_seconds_from_now(std::int64_t offset) {
  return std::chrono::duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch()).count() +
         offset;
}

TEST(TimeLimitTest, WithoutLimitsARunNeverStops) {
  EXPECT_FALSE(TimeLimit(steady_clock::now() - seconds(100000), 0, std::nullopt).reached());
}

TEST(TimeLimitTest, TheJobsOwnLimitCountsFromTheStart) {
  EXPECT_TRUE(TimeLimit(steady_clock::now() - seconds(11), 10, std::nullopt).reached());
  EXPECT_FALSE(TimeLimit(steady_clock::now() - seconds(11), 1000, std::nullopt).reached());
}

TEST(TimeLimitTest, ARunStopsAMinuteBeforeItsAllocationEnds) {
  EXPECT_TRUE(TimeLimit(steady_clock::now(), 0, unix_seconds_from_now(30)).reached());
  EXPECT_TRUE(TimeLimit(steady_clock::now(), 0, unix_seconds_from_now(-1000)).reached());
  EXPECT_FALSE(TimeLimit(steady_clock::now(), 0, unix_seconds_from_now(600)).reached());
}

TEST(TimeLimitTest, TheEarlierLimitWins) {
  EXPECT_TRUE(TimeLimit(steady_clock::now() - seconds(11), 10, unix_seconds_from_now(100000)).reached());
  EXPECT_TRUE(TimeLimit(steady_clock::now(), 100000, unix_seconds_from_now(10)).reached());
}

/// Output about SLURM_JOB_END_TIME, which is unset afterwards, and the value taken from it.
std::pair<std::string, std::optional<std::int64_t>> told_and_taken(const std::string& end_time) {
  setenv("SLURM_JOB_END_TIME", end_time.c_str(), 1);
  ::testing::internal::CaptureStderr();
  const auto taken = allocation_end_ahead();
  unsetenv("SLURM_JOB_END_TIME");
  return {::testing::internal::GetCapturedStderr(), taken};
}

TEST(TimeLimitTest, AStaleEndTimeIsTold) {
  for (const std::int64_t stale : {unix_seconds_from_now(-5), std::int64_t{1}}) {
    const auto [told, taken] = told_and_taken(std::to_string(stale));
    EXPECT_EQ(taken, std::nullopt);
    EXPECT_NE(told.find(fmt::format("SLURM_JOB_END_TIME={} is in the past", stale)), std::string::npos);
  }
}

TEST(TimeLimitTest, SlurmsEndTimeIsReadFromTheEnvironment) {
  const std::int64_t soon = unix_seconds_from_now(5);
  const auto [told, taken] = told_and_taken(std::to_string(soon));
  EXPECT_EQ(told, "");
  EXPECT_EQ(taken, soon);
  EXPECT_EQ(told_and_taken("soon").second, std::nullopt);
  EXPECT_EQ(allocation_end_ahead(), std::nullopt);
}

// Verdicts: of the last start under one name, of earlier ones under numbers.

class VerdictFileTest : public ::testing::Test {
 protected:
  VerdictFileTest() { std::filesystem::create_directory(run_.path() + "/log"); }
  /// Starts all ranks with a path for the verdict.
  std::string start(int ranks = 2) const {
    std::vector<std::string> paths(static_cast<std::size_t>(ranks));
    run_thread_ranks(ranks, [&](Communicator& comm) {
      open_verdict(comm, comm.rank() == 0 ? run_.path() : "");
      paths[static_cast<std::size_t>(comm.rank())] = comm.activity().verdict_file.get();
    });
    EXPECT_EQ(paths.front(), paths.back());
    return paths.front();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const std::string& path : verdict_files(Env::posix(), run_.path()))
      found.push_back(std::filesystem::path(path).filename());
    return found;
  }

  TemporaryDirectory run_;
};

TEST_F(VerdictFileTest, EarlierOnesGetNumbersInOrder) {
  for (const char* text : {"first", "second"}) std::ofstream(start()) << text;
  start(1);  // a single rank loses no other
  EXPECT_EQ(names(), (std::vector<std::string>{"verdict-1.txt", "verdict-2.txt"}));
  std::ofstream(start()) << "third";
  EXPECT_EQ(names(), (std::vector<std::string>{"verdict-1.txt", "verdict-2.txt", "verdict.txt"}));
  std::string second;
  std::ifstream(run_.path() + "/log/verdict-2.txt") >> second;
  EXPECT_EQ(second, "second");
}

/// Its name is how ranks agree on which of them speaks: with a link there, none would.
TEST_F(VerdictFileTest, LinkInItsPlaceIsRefused) {
  std::filesystem::create_symlink("/dev/null", run_.path() + "/log/verdict.txt");
  EXPECT_THROW(start(), IoError);
}

}  // namespace

}  // namespace lockstep
