// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Threads of a rank, and errors that they keep for the end of a step.
#include "trainer/training/worker_pool.hpp"

#include "common/error.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"

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

TEST(UnreadSamplesTest, KeepTheFirstErrorOfADiskOrOfItsDataAndNoOther) {
  UnreadSamples unread;
  const auto attempt = [&](const auto& error) { return unread.attempt([&] { throw error; }); };
  EXPECT_THROW(attempt(IoError("before it keeps any")), IoError);
  unread.keep();
  EXPECT_TRUE(unread.attempt([] {}));
  EXPECT_FALSE(unread.any());
  EXPECT_FALSE(attempt(DataError("the first")));
  EXPECT_FALSE(attempt(IoError("the second")));
  EXPECT_THROW(attempt(MissingDataError("gone")), MissingDataError);
  EXPECT_THROW(attempt(InternalError("ours")), InternalError);
  EXPECT_TRUE(unread.any());
  EXPECT_THROW(std::rethrow_exception(unread.take()), DataError);
  EXPECT_FALSE(unread.any());
  EXPECT_TRUE(unread.take() == nullptr);
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
