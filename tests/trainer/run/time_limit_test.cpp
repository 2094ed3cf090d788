// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/run/time_limit.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep {
namespace {

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

TEST(TimeLimitTest, AStaleEndTimeIsTold) {
  EXPECT_TRUE(has_passed(unix_seconds_from_now(-5)));
  EXPECT_TRUE(has_passed(1));
  EXPECT_FALSE(has_passed(unix_seconds_from_now(5)));
}

TEST(TimeLimitTest, SlurmsEndTimeIsReadFromTheEnvironment) {
  setenv("SLURM_JOB_END_TIME", "1700000000", 1);
  EXPECT_EQ(slurm_allocation_end(), 1700000000);
  setenv("SLURM_JOB_END_TIME", "soon", 1);
  EXPECT_EQ(slurm_allocation_end(), std::nullopt);
  unsetenv("SLURM_JOB_END_TIME");
  EXPECT_EQ(slurm_allocation_end(), std::nullopt);
}

}  // namespace
}  // namespace lockstep
