// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Threads, blocks and barriers of the emulator.
#include "tests/kernels/emulation/rig.hpp"

#include <cstdlib>
#include <numeric>
#include <thread>

namespace lockstep::emulated {
namespace {

using ThreadsTest = EmulatorTest;

__global__ void number_kernel(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned number = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[number] = static_cast<int>(number);
}

TEST_F(ThreadsTest, EveryThreadOfEveryBlockRunsOnce) {
  const dim3 grid(3, 2, 4), block(5, 3, 2);
  const std::size_t total = 24 * 30;
  for (unsigned seed = 0; seed < 3; ++seed) {
    set_thread_order(seed);
    const DeviceArray<int> out(total, -1);
    launch(nullptr, {grid, block}, number_kernel, out.data());
    std::vector<int> expected(total);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(out.values(), expected);
  }
}

__global__ void log_kernel(int* next, int* log) {
  log[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

std::vector<int> order_of_threads() {
  const DeviceArray<int> next(1, 0), log(4 * 8, -1);
  launch(nullptr, {4, 8}, log_kernel, next.data(), log.data());
  return log.values();
}

TEST_F(ThreadsTest, NaturalOrderIsThreadAfterThread) {
  std::vector<int> expected(32);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order_of_threads(), expected);
}

TEST_F(ThreadsTest, SeedsGiveOrdersOfTheirOwnWhichTheyRepeat) {
  EXPECT_EQ(results_of_ten_orders(order_of_threads).size(), 10U);
  set_thread_order(7);
  const std::vector<int> first = order_of_threads(), second = order_of_threads();
  EXPECT_NE(first, second) << "two launches in the same order";
  set_thread_order(7);
  EXPECT_EQ(order_of_threads(), first);
  EXPECT_EQ(order_of_threads(), second);
}

TEST(ThreadsDeathTest, EnvironmentVariableIsTheFirstSeed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a new process
  setenv("LOCKSTEP_THREAD_ORDER", "7", 1);
  const auto same_as_seed_7 = [] {
    const std::vector<int> first = order_of_threads();
    set_thread_order(7);
    return first == order_of_threads();
  };
  EXPECT_EXIT(std::exit(same_as_seed_7() ? 0 : 1), testing::ExitedWithCode(0), "");
  unsetenv("LOCKSTEP_THREAD_ORDER");
}

/// Each thread takes over its neighbour's number, `rounds` times.
__global__ void rotate_kernel(int rounds, int* out) {
  LOCKSTEP_SHARED(int, numbers, 96);
  const unsigned own = threadIdx.x, neighbour = (own + 1) % blockDim.x;
  numbers[own] = static_cast<int>(own);
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    const int moved = numbers[neighbour];
    __syncthreads();
    numbers[own] = moved;
  }
  out[blockIdx.x * blockDim.x + own] = numbers[own];
}

TEST_F(ThreadsTest, BarriersOrderWritesAndReads) {
  const auto rotate = [] {
    const DeviceArray<int> out(2 * 96);
    launch(nullptr, {2, 96}, rotate_kernel, 10, out.data());
    return out.values();
  };
  const auto results = results_of_ten_orders(rotate);
  ASSERT_EQ(results.size(), 1U);
  for (int i = 0; i < 192; ++i)
    EXPECT_EQ((*results.begin())[static_cast<std::size_t>(i)], (i % 96 + 10) % 96) << "thread " << i;
}

__global__ void count_kernel(int* out) {
  const int odd = threadIdx.x % 2 == 1;
  out[0] = __syncthreads_count(odd);
  out[1] = __syncthreads_or(odd);
  out[2] = __syncthreads_and(odd);
  out[3] = __syncthreads_and(1);
  out[4] = __syncthreads_or(0);
}

TEST_F(ThreadsTest, BarriersCountPredicates) {
  const DeviceArray<int> out(5, -1);
  launch(nullptr, {1, 50}, count_kernel, out.data());
  EXPECT_EQ(out.values(), (std::vector<int>{25, 1, 0, 1, 0}));
}

TEST_F(ThreadsTest, HostThreadsRunKernelsAtTheSameTime) {
  const auto many_launches = [](bool* right) {
    for (int i = 0; i < 20; ++i) {
      const DeviceArray<int> out(96, -1);
      launch(nullptr, {1, 96}, rotate_kernel, 5, out.data());
      for (int k = 0; k < 96; ++k) *right &= out[static_cast<std::size_t>(k)] == (k + 5) % 96;
    }
  };
  bool first = true, second = true;
  std::thread one(many_launches, &first), two(many_launches, &second);
  one.join();
  two.join();
  EXPECT_TRUE(first && second);
}

__global__ void throwing_kernel(int thrower) {
  const std::vector<int> memory(100);  // to be freed when the threads are unwound
  __syncthreads();
  if (static_cast<int>(threadIdx.x) == thrower) throw DataError("planted");
  __syncthreads();
}

TEST_F(ThreadsTest, ExceptionsLeaveTheLaunchAndUnwindAllThreads) {
  EXPECT_THROW(launch(nullptr, {3, 70}, throwing_kernel, 40), DataError);
  const DeviceArray<int> out(96, -1);
  launch(nullptr, {1, 96}, rotate_kernel, 1, out.data());
  EXPECT_EQ(out[0], 1) << "the next launch is sound";
}

__global__ void change_argument_kernel(int argument, int* out) {
  argument += static_cast<int>(threadIdx.x);
  out[threadIdx.x] = argument;
}

TEST_F(ThreadsTest, EveryThreadHasItsOwnArguments) {
  const DeviceArray<int> out(3, -1);
  launch(nullptr, {1, 3}, change_argument_kernel, 10, out.data());
  EXPECT_EQ(out.values(), (std::vector<int>{10, 11, 12}));
}

__global__ void empty_kernel() {}

TEST_F(ThreadsTest, ImpossibleLaunchesAreRefused) {
  const auto refused = [](const LaunchShape& shape) {
    return fault_of([&] { launch(nullptr, shape, empty_kernel); });
  };
  for (const LaunchShape& shape :
       {LaunchShape{0, 1}, LaunchShape{1, 0}, LaunchShape{1, 1025}, LaunchShape{1, {1024, 2}},
        LaunchShape{1, {1, 1, 65}}, LaunchShape{{1, 65536}, 1}, LaunchShape{1, 1, 164 * 1024}})
    expect_contains(refused(shape), {"threads_test.cpp:", "no GPU runs grid"});
  EXPECT_EQ(refused({1, 1024, 163 * 1024}), "no fault");
}

}  // namespace
}  // namespace lockstep::emulated
