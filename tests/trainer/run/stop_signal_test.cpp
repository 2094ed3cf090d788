// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/run/stop_signal.hpp"

#include "comm/flight_record.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/run/run_directory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

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

}  // namespace

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

// The directories of flight records: the last starts are kept, and files of others stay.

namespace {

namespace fs = std::filesystem;

class FlightDirectoryTest : public ::testing::Test {
 protected:
  void start() const {
    run_thread_ranks(2, [&](Communicator& comm) { open_flight_record(comm, run_.path()); });
  }
  std::string path(const std::string& name) const { return run_.path() + "/flight/" + name; }
  void put(const std::string& name) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << "mine";
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(path(""))) found.insert(entry.path().filename());
    return found;
  }

  TemporaryDirectory run_;
};

TEST(FlightFileTest, OnlyNamesThatARankGivesAreOurs) {
  for (const char* ours :
       {"rank-0000.flight", "rank-0123.flight", "rank-12345.flight", "verdict.txt", "rank-0003.flight.part"})
    EXPECT_TRUE(is_flight_file(ours)) << ours;
  for (const char* other :
       {"rank-1.flight", "verdict.txt.part", "rank-0001.flight.bak", "rank-.flight", "rank--001.flight",
        "notes.flight", "rank-0001 .flight", "verdict", "rank-00001.flight", ""})
    EXPECT_FALSE(is_flight_file(other)) << other;
}

TEST_F(FlightDirectoryTest, TheLastThreeStartsAreKept) {
  for (int i = 0; i < 5; ++i) start();
  EXPECT_EQ(names(), (std::set<std::string>{"0003", "0004", "0005"}));
  EXPECT_TRUE(fs::exists(path("0005/rank-0001.flight")));
}

TEST_F(FlightDirectoryTest, DirectoryThatHoldsAnythingElseStaysWhole) {
  start();
  put("0001/notes.txt");
  for (int i = 0; i < 4; ++i) start();
  EXPECT_TRUE(fs::exists(path("0001/notes.txt")) && fs::exists(path("0001/rank-0000.flight")));
  EXPECT_FALSE(fs::exists(path("0002")));
}

TEST_F(FlightDirectoryTest, WhatIsNoStartOfOursIsNeitherCountedNorTouched) {
  const TemporaryDirectory elsewhere;
  std::ofstream(elsewhere.path() + "/rank-0000.flight") << "mine";
  for (const char* name :
       {"7/rank-0000.flight", "00001/rank-0000.flight", "2147483647/rank-0000.flight", "0002"})
    put(name);
  fs::create_directory_symlink(elsewhere.path(), path("0001"));
  for (int i = 0; i < 5; ++i) start();
  EXPECT_EQ(names(),
            (std::set<std::string>{"0001", "0002", "00001", "0005", "0006", "0007", "2147483647", "7"}));
  EXPECT_TRUE(fs::is_symlink(path("0001")));
  EXPECT_TRUE(fs::exists(elsewhere.path() + "/rank-0000.flight"));
  for (const char* name : {"7", "00001", "2147483647"})
    EXPECT_TRUE(fs::exists(path(name) + "/rank-0000.flight")) << name;
}

}  // namespace

}  // namespace lockstep
