// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How many steps a device takes at once.
#include "tests/trainer/training/data_parallel_fixture.hpp"

namespace lockstep {

namespace {

using namespace data_parallel_test;

/// One step after the other, as many at a time as the strategy likes.
std::int64_t longest_series_after(int series, double seconds_a_step) {
  std::int64_t steps = 0;
  run_thread_ranks(1, [&](Communicator& comm) {
    const Job job = make_job();
    bool gone = false;
    const JobSetup setup =
        setup_of(job, kOneLayer, kOneBucket, std::make_unique<MortalAllReduce>(gone, seconds_a_step));
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    strategy->distribute();
    EXPECT_EQ(strategy->longest_series(), 1) << "nothing is known of the steps yet";
    StepPosition position{};
    for (; series > 0; --series) {
      strategy->run(position, strategy->longest_series(), false);
      position.global_step += strategy->longest_series();
    }
    steps = strategy->longest_series();
  });
  return steps;
}

TEST(DataParallelTest, ASeriesOfSlowStepsOnADeviceIsShort) {
  EXPECT_EQ(longest_series_after(4, 0), 4) << "on the emulator";
  EXPECT_EQ(longest_series_after(2, 0.3), 1);
}

/// 2^31 of them. Here a batch is the whole set, but the job says more.
TEST(DataParallelTest, ASeriesHasNoMoreLossesThanTheirSumHasRoomFor) {
  const auto longest_series = [](std::int64_t global_batch) {
    std::int64_t longest = 0;
    run_thread_ranks(1, [&](Communicator& comm) {
      Job job = make_job();
      job.data.global_batch = global_batch;
      bool gone = false;
      const JobSetup setup = setup_of(job, kOneLayer, kOneBucket, std::make_unique<MortalAllReduce>(gone));
      const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
      strategy->distribute();
      for (std::int64_t epoch = 0; epoch < 4; ++epoch)
        strategy->run({.epoch = epoch, .step_in_epoch = 0, .global_step = epoch}, 1, false);
      longest = strategy->longest_series();
    });
    return longest;
  };
  constexpr std::int64_t kRoom = std::int64_t{1} << 31;
  EXPECT_EQ(longest_series(kRoom / 3), 3);
  EXPECT_EQ(longest_series(2 * kRoom), 1);
}

TEST(SeriesLengthTest, FollowsTheTimeOfSteps) {
  run_thread_ranks(1, [](Communicator& comm) {
    SeriesLength length(64);
    for (const std::int64_t expected : {2, 4, 8, 16, 32, 64, 64}) {
      length.took(length.steps(), 1e-4 * static_cast<double>(length.steps()), comm);
      EXPECT_EQ(length.steps(), expected);
    }
    for (int series = 1; series < 16; ++series) {
      EXPECT_EQ(length.steps(), 64) << "ranks agree once in 16 series";
      length.took(64, 64 * 0.1, comm);
    }
    EXPECT_EQ(length.steps(), 5) << "steps of 0.1 s";
    length.took(5, 5 * 3600.0, comm);
    EXPECT_EQ(length.steps(), 1);
    length.took(1, 0, comm);
    EXPECT_EQ(length.steps(), 2);
  });
}

/// Clocks of ranks differ; a series must not.
TEST(SeriesLengthTest, IsTheSameOnAllRanks) {
  std::vector<std::int64_t> steps(3);
  run_thread_ranks(3, [&](Communicator& comm) {
    SeriesLength length(64);
    for (int series = 0; series < 8; ++series) length.took(10, 0.3 * (comm.rank() + 1), comm);
    steps[static_cast<std::size_t>(comm.rank())] = length.steps();
  });
  EXPECT_EQ(steps, std::vector<std::int64_t>(3, 8)) << "0.06 s a step";
}

}  // namespace

}  // namespace lockstep
