// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Requests to stop, from signals and from limits of time.
#include "trainer/run/stop_signal.hpp"

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"

#include <unistd.h>

#include <cerrno>

namespace lockstep {

namespace {

/// Requests at these seconds, and their effects: S stop, = the same one, P patience, L leave.
TEST(StopRequestsTest, RepeatedRequestsAreOneAndImpatienceLeaves) {
  using Effect = StopRequests::Effect;
  const std::map<Effect, char> letters = {
      {Effect::kStop, 'S'}, {Effect::kSame, '='}, {Effect::kPatience, 'P'}, {Effect::kLeave, 'L'}};
  const std::pair<std::vector<double>, std::string> rows[] = {
      {{0, 0, 0.3, 0.99}, "S==="},
      {{0, 1}, "SP"},
      {{0, 1.5, 3}, "SPL"},                  // the third
      {{0, 0.01, 1.5, 1.51, 2.4}, "S=P=="},  // twins
      {{0, 0.1, 5.1}, "S=L"},                // after the grace
      {{0, 4.999}, "SP"},
      {{0, 5}, "SL"},
      {{0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2}, "S===P===L"}};  // hammering
  for (const auto& [seconds, expected] : rows) {
    StopRequests requests;
    std::string effects;
    for (const double second : seconds)
      effects += letters.at(requests.add(1'000'000'000'000 + static_cast<std::int64_t>(second * 1e9)));
    EXPECT_EQ(effects, expected);
  }
}

/// In a process of its own, which a second request would end with 152.
TEST(StopSignalTest, TheLimitOnProcessorTimeIsOneRequestHoweverOftenItComes) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto body = [] {
    catch_stop_signals(OnStop::kSave);
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

/// In a process that another launcher than mpirun has started. The first rank alone speaks of the first two requests.
TEST(StopSignalTest, ARankThatLeavesAtOnceSaysWhichItIs) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const test::SetVariable rank("PMI_RANK", "3"), size("PMI_SIZE", "4");
  const auto body = [] {
    catch_stop_signals(OnStop::kSave);
    for (int request = 1; request <= 3; ++request) {
      std::raise(SIGTERM);
      ::usleep(1'050'000);
    }
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(128 + SIGTERM),
              "^lockstep: rank 3: SIGTERM again: leaving now, ");
}

/// With standard error closed, what it says fails.
TEST(StopSignalTest, WhatASignalInterruptsFindsItsErrorAsItWas) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto body = [] {
    catch_stop_signals(OnStop::kSave);
    ::close(STDERR_FILENO);
    errno = 0;
    std::raise(SIGTERM);
    std::_Exit(errno == 0 && stop_signal() == SIGTERM ? 0 : 1);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

/// As nohup leaves it to a program.
TEST(StopSignalTest, AHangUpThatIsIgnoredAtTheStartStaysIgnored) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto body = [] {
    std::signal(SIGHUP, SIG_IGN);
    catch_stop_signals(OnStop::kSave);
    std::raise(SIGHUP);
    std::_Exit(stop_requested() ? 1 : 0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "^$");
}

TEST(StopSignalTest, SignalsHaveNames) {
  for (const auto& [signal, name] : {std::pair{SIGINT, "SIGINT"},
                                     {SIGTERM, "SIGTERM"},
                                     {SIGHUP, "SIGHUP"},
                                     {SIGUSR1, "SIGUSR1"},
                                     {SIGUSR2, "SIGUSR2"},
                                     {SIGXCPU, "SIGXCPU (the limit on processor time, ulimit -S -t)"},
                                     {SIGSEGV, "a signal"}})
    EXPECT_STREQ(stop_signal_name(signal), name);
}

using std::chrono::seconds;

std::int64_t unix_seconds_from_now(std::int64_t offset) {
  return std::chrono::duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch()).count() +
         offset;
}

/// A minute before the allocation ends, or when the job's own limit since its start has passed.
TEST(TimeLimitTest, TheEarlierLimitWins) {
  struct Row {
    int started_before;
    double max_seconds;
    std::optional<std::int64_t> allocation_left;
    bool is_reached;
  };
  for (const Row& row : {Row{100000, 0, {}, false},
                         {11, 10, {}, true},
                         {11, 1000, {}, false},
                         {0, 0, 60, true},
                         {0, 0, 90, false},
                         {0, 0, -1000, true},
                         {0, 0, 600, false},
                         {11, 10, 100000, true},
                         {0, 100000, 10, true}}) {
    std::optional<std::int64_t> end;
    if (row.allocation_left) end = unix_seconds_from_now(*row.allocation_left);
    EXPECT_EQ(TimeLimit(Clock::now() - seconds(row.started_before), row.max_seconds, end).reached(),
              row.is_reached)
        << row.started_before << " " << row.max_seconds;
  }
}

/// Output about SLURM_JOB_END_TIME, and the value taken from it.
std::pair<std::string, std::optional<std::int64_t>> told_and_taken(const std::string& end_time) {
  const test::SetVariable variable("SLURM_JOB_END_TIME", end_time.c_str());
  ::testing::internal::CaptureStderr();
  const auto taken = allocation_end_ahead();
  return {::testing::internal::GetCapturedStderr(), taken};
}

TEST(TimeLimitTest, SlurmsEndTimeIsReadFromTheEnvironmentAndAStaleOneIsTold) {
  const std::int64_t soon = unix_seconds_from_now(5);
  EXPECT_EQ(told_and_taken(std::to_string(soon)), std::pair(std::string(), std::optional(soon)));
  EXPECT_EQ(told_and_taken("soon").second, std::nullopt);
  EXPECT_EQ(allocation_end_ahead(), std::nullopt);
  for (const std::int64_t stale : {unix_seconds_from_now(-5), std::int64_t{1}}) {
    const auto [told, taken] = told_and_taken(std::to_string(stale));
    EXPECT_EQ(taken, std::nullopt);
    test::expect_words(told, {fmt::format("SLURM_JOB_END_TIME={} is in the past", stale)});
  }
}

}  // namespace

}  // namespace lockstep
