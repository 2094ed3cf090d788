// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/engine/worker_pool.hpp"

#include "common/error.hpp"
#include "tests/support/small_disk.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace lockstep {
namespace {

TEST(WorkerPoolTest, EveryThreadWorksOnceInEachRound) {
  for (const int threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads));
    for (int round = 0; round < 100; ++round) {
      pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    }
    for (const auto& count : calls) EXPECT_EQ(count, 100);
  }
}

TEST(WorkerPoolTest, AnExceptionOfAnyThreadReachesTheCallerAndThePoolGoesOn) {
  WorkerPool pool(3);
  for (int culprit = 0; culprit < 3; ++culprit) {
    const auto work = [&](int thread) {
      if (thread == culprit) throw std::runtime_error("out of paper");
    };
    EXPECT_THROW(pool.run(work), std::runtime_error);
  }
  std::atomic<int> calls = 0;
  pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(WorkerPoolTest, ThreadThatTheSystemDoesNotGiveIsAnErrorWithItsReason) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs the memory that this takes away";
#else
  const NoMoreThreads few(NoMoreThreads::Spare::kTwoOrThree);
  EXPECT_THROW(WorkerPool(16), DeviceError) << "and those that have started end";
#endif
}

}  // namespace
}  // namespace lockstep
