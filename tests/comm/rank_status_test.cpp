// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Texts of a fixed size, waits, and how long threads wait for a processor.
#include "comm/rank_status.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace lockstep {

namespace {

template <std::size_t Size>
std::string as_put(const std::string& text) {
  std::array<char, Size> field{};
  field.fill('x');
  put_text(text, field);
  EXPECT_EQ(field.back(), '\0');
  return std::string(text_in(field));
}

TEST(FixedTextTest, IsWholeOrEndsWithAWordAndDots) {
  EXPECT_EQ(as_put<16>("a barrier"), "a barrier");
  EXPECT_EQ(as_put<16>("fifteen letters"), "fifteen letters");
  EXPECT_EQ(as_put<16>("fifteen letters and more"), "fifteen...");
  EXPECT_EQ(as_put<16>("sixteenletters+and+more"), "sixteenlette...");
  EXPECT_EQ(as_put<16>("elfe Buchst\u00e4\u00e4ben"), "elfe Buchst...") << "no half character";
  EXPECT_EQ(as_put<16>(""), "");
}

TEST(RankActivityTest, WhatIsWaitedForIsWhole) {
  RankActivity activity;
  // The longest that there are.
  for (const std::string what : {"its group: the gradients' all-reduce through host memory",
                                 "the copy of gradients from this rank's GPU",
                                 "its group: the weights of stage 12 (layers 100-199) on rank 1023"}) {
    activity.begin_wait(what, Waiting::kForSome);
    EXPECT_EQ(activity.status().place_text(), what);
    activity.end_wait();
  }
}

TEST(RankActivityTest, WaitsForAllAreCountedWhateverTheyAreCalled) {
  RankActivity activity;
  activity.begin_wait("any words", Waiting::kForAll);
  EXPECT_EQ(activity.status().collective, 1U);
  activity.end_wait();
  activity.begin_wait("a barrier", Waiting::kForSome);
  EXPECT_EQ(activity.status().collective, 1U);
}

}  // namespace

// What threads wait for a processor is counted, and nothing else.

namespace {

constexpr std::int64_t kWaited = 10'000'000;
constexpr std::chrono::seconds kPatience{60};

void keep_to_first_core() {
  cpu_set_t allowed, first;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&first);
  for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++core) {
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &first);
  }
  sched_setaffinity(0, sizeof first, &first);
}

/// Some kernels are built without: zeros, or no file.
bool kernel_counts() {
  std::int64_t running = 0;
  for (int i = 0; i < 1000 && running == 0; ++i) {
    std::ifstream("/proc/thread-self/schedstat") >> running;
    sched_yield();
  }
  return running > 0;
}

/// Of that one of two without rest that waited longer for the core that they share.
TEST(ProcessorWaitTest, ThreadsThatShareACoreWaitForIt) {
  if (!kernel_counts()) GTEST_SKIP() << "this kernel does not count it";
  ProcessorWait both;
  std::atomic<int> ready{0};
  std::atomic<bool> ended{false};
  const auto compute = [&] {
    keep_to_first_core();
    both.count_this_thread();
    ++ready;
    while (!ended) {
    }
  };
  std::thread one(compute), other(compute);
  while (ready < 2) std::this_thread::yield();
  both.start();
  const auto start = std::chrono::steady_clock::now();
  std::int64_t waited = 0;
  while ((waited = both.since_start()) < kWaited && std::chrono::steady_clock::now() - start < kPatience)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ended = true;
  one.join(), other.join();
  EXPECT_GE(waited, kWaited) << "each of them runs for half of the time at most";
}

TEST(ProcessorWaitTest, NobodyIsCountedUnlessHeAsks) {
  ProcessorWait nobody;
  nobody.start();
  EXPECT_EQ(nobody.since_start(), 0);
}

}  // namespace

}  // namespace lockstep
