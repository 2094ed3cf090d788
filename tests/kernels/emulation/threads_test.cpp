// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Threads, blocks and barriers of the emulator.
#include "tests/kernels/emulation/rig.hpp"
#include "tests/support/prelude.hpp"

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

__global__ void log_kernel(unsigned* next, int* log) {
  log[atomicAdd(next, 1U)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

std::vector<int> order_of_threads() {
  const DeviceArray<unsigned> next(1, 0);
  const DeviceArray<int> log(4 * 8, -1);
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

TEST_F(ThreadsTest, BlocksHaveOrdersToo) {
  const auto order_of_blocks = [] {
    const DeviceArray<unsigned> next(1, 0);
    const DeviceArray<int> log(32, -1);
    launch(nullptr, {32, 1}, log_kernel, next.data(), log.data());
    return log.values();
  };
  EXPECT_EQ(results_of_ten_orders(order_of_blocks).size(), 10U);
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
  for (const LaunchShape& shape :
       {LaunchShape{0, 1}, LaunchShape{1, 0}, LaunchShape{1, 1025}, LaunchShape{1, {1024, 2}},
        LaunchShape{1, {1, 1, 65}}, LaunchShape{{1, 65536}, 1}, LaunchShape{{1, 1, 65536}, 1},
        LaunchShape{0x80000000U, 1}, LaunchShape{1, 1, 163 * 1024 + 1}})
    expect_error<InternalError>([&] { launch(nullptr, shape, empty_kernel); },
                                {"threads_test.cpp:", "no GPU runs grid"});
  expect_error<InternalError>(
      [] {
        launch(nullptr, {{2, 3, 4}, {5, 6, 65}, 7}, empty_kernel);
      },
      {": no GPU runs grid (2,3,4) of blocks (5,6,65) with 7 bytes of shared memory"});
  EXPECT_NO_THROW(emulation::check_shape({{0x7FFFFFFFU, 65535, 65535}, {16, 1, 64}, 163 * 1024}));
  EXPECT_NO_THROW(launch(nullptr, {1, 1024, 163 * 1024}, empty_kernel));
}

}  // namespace

}  // namespace lockstep::emulated

namespace lockstep::emulated::warp_test {

// Shuffles and votes of the emulator.

namespace {

using WarpTest = EmulatorTest;
constexpr unsigned kAll = 0xFFFFFFFFU;

/// body(lane) in each thread of two warps; expects expected(lane) in each, in every order.
template <typename T>
__global__ void each_lane_kernel(const std::function<T(int)>* body, T* out) {
  out[threadIdx.x] = (*body)(static_cast<int>(threadIdx.x) % 32);
}

template <typename T>
void expect_lanes(const std::function<T(int)>& body, const std::function<T(int)>& expected) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    set_thread_order(seed);
    const DeviceArray<T> out(64, T{});
    launch(nullptr, {1, 64}, each_lane_kernel<T>, &body, out.data());
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(out[static_cast<std::size_t>(i)], expected(i % 32)) << "order " << seed << ", thread " << i;
  }
}

TEST_F(WarpTest, ShufflesReadLanesWithinTheirWidth) {
  expect_lanes<int>([](int lane) { return __shfl_sync(kAll, lane * 10, 31 - lane); },
                    [](int lane) { return (31 - lane) * 10; });
  for (const int from : {3, 11})
    expect_lanes<int>([&](int lane) { return __shfl_sync(kAll, lane, from, 8); },
                      [](int lane) { return lane / 8 * 8 + 3; });
  // At the end a lane keeps its own value.
  expect_lanes<double>([](int lane) { return __shfl_down_sync(kAll, lane * 0.5, 5); },
                       [](int lane) { return (lane + 5 < 32 ? lane + 5 : lane) * 0.5; });
  expect_lanes<int>([](int lane) { return __shfl_down_sync(kAll, lane, 2, 4); },
                    [](int lane) { return lane % 4 < 2 ? lane + 2 : lane; });
  expect_lanes<long long>([](int lane) { return __shfl_xor_sync(kAll, (1LL << 40) + lane, 16); },
                          [](int lane) { return (1LL << 40) + (lane ^ 16); });
  expect_lanes<unsigned>([](int lane) { return __shfl_xor_sync(kAll, static_cast<unsigned>(lane), 1); },
                         [](int lane) { return static_cast<unsigned>(lane ^ 1); });
  expect_lanes<unsigned>([](int lane) { return __ballot_sync(kAll, lane % 3 == 0); },
                         [](int) { return 0x49249249U; });
}

TEST_F(WarpTest, ShufflesInARowAddUpAWarp) {
  const auto sum = [](int lane) {
    int value = lane;
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
    return value;
  };
  expect_lanes<int>(sum, [](int) { return 31 * 32 / 2; });
}

TEST_F(WarpTest, PartsOfAWarpExchangeByThemselves) {
  const auto sum_of_half = [](int lane) {
    const unsigned mask = lane < 16 ? 0x0000FFFFU : 0xFFFF0000U;
    int value = lane;
    for (int offset = 8; offset > 0; offset /= 2) value += __shfl_xor_sync(mask, value, offset);
    if (lane >= 16) value += __shfl_xor_sync(mask, 0, 1);  // one exchange more
    __syncwarp();
    return value;
  };
  expect_lanes<int>(sum_of_half, [](int lane) { return lane < 16 ? 120 : 376; });
}

TEST_F(WarpTest, ALastWarpMayBeShort) {
  const auto lanes = [](int lane) { return lane; };
  const std::function<int(int)> body = [&](int lane) {
    return __shfl_sync(threadIdx.x < 32 ? kAll : 0xFFU, lanes(lane), 7);
  };
  const DeviceArray<int> out(40, -1);
  launch(nullptr, {1, 40}, each_lane_kernel<int>, &body, out.data());
  EXPECT_EQ(out.values(), std::vector<int>(40, 7));
}

}  // namespace

}  // namespace lockstep::emulated::warp_test

namespace lockstep::emulated {

// Atomics, arithmetic and vector types of the emulator.

namespace {

using FunctionsTest = EmulatorTest;

__global__ void atomics_kernel(unsigned* u, unsigned long long* w) {
  atomicAdd(u, 2U);
  atomicAdd(w, ~0ULL);  // minus one
}

TEST_F(FunctionsTest, AtomicAdditionsAddUpAndReturnTheOldValue) {
  const DeviceArray<unsigned> u(1, 0);
  const DeviceArray<unsigned long long> w(1, 7);
  launch(nullptr, {4, 100}, atomics_kernel, u.data(), w.data());
  EXPECT_EQ(u[0], 800U);
  EXPECT_EQ(static_cast<long long>(w[0]), -393);
  EXPECT_EQ(atomicAdd(u.data(), 5U), 800U);
  EXPECT_EQ(u[0], 805U);
}

TEST_F(FunctionsTest, RoundingBitsAndAlignmentsAreThoseOfAGpu) {
  using Limits = std::numeric_limits<long long>;
  EXPECT_EQ(__double2ll_rn(2.5), 2);
  EXPECT_EQ(__double2ll_rn(3.5), 4);
  EXPECT_EQ(__double2ll_rn(-2.5), -2);
  EXPECT_EQ(__double2ll_rn(1e300), Limits::max());
  EXPECT_EQ(__double2ll_rn(-1e300), Limits::min());
  EXPECT_EQ(__double2ll_rn(std::numeric_limits<double>::quiet_NaN()), Limits::min());
  EXPECT_EQ(__popc(0xF0F0U), 8);
  EXPECT_EQ(__float_as_uint(1.0F), 0x3F800000U);
  static_assert(alignof(float2) == 8 && alignof(float4) == 16);
}

}  // namespace

}  // namespace lockstep::emulated
