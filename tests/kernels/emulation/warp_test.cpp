// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Shuffles and votes of the emulator.
#include "tests/kernels/emulation/rig.hpp"

#include <functional>

namespace lockstep::emulated::warp_test {
namespace {

using WarpTest = EmulatorTest;
constexpr unsigned kAll = 0xFFFFFFFFU;

/// body(lane) in each thread of two warps; expects expected(lane) in each, in every order.
template <typename T>
__global__ void each_lane_kernel(const std::function<T(int)>* body, T* out) {
  out[threadIdx.x] = (*body)(static_cast<int>(threadIdx.x) % warpSize);
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

TEST_F(WarpTest, ShuffleReadsALane) {
  expect_lanes<int>([](int lane) { return __shfl_sync(kAll, lane * 10, 31 - lane); },
                    [](int lane) { return (31 - lane) * 10; });
}

TEST_F(WarpTest, ShuffleStaysWithinItsWidth) {
  expect_lanes<int>([](int lane) { return __shfl_sync(kAll, lane, 3, 8); },
                    [](int lane) { return lane / 8 * 8 + 3; });
  expect_lanes<int>([](int lane) { return __shfl_sync(kAll, lane, 11, 8); },
                    [](int lane) { return lane / 8 * 8 + 3; });
}

TEST_F(WarpTest, ShuffleUpAndDownKeepTheOwnValueAtTheEnds) {
  expect_lanes<float>([](int lane) { return __shfl_up_sync(kAll, static_cast<float>(lane), 3); },
                      [](int lane) { return static_cast<float>(lane < 3 ? lane : lane - 3); });
  expect_lanes<double>([](int lane) { return __shfl_down_sync(kAll, lane * 0.5, 5); },
                       [](int lane) { return (lane + 5 < 32 ? lane + 5 : lane) * 0.5; });
  expect_lanes<int>([](int lane) { return __shfl_down_sync(kAll, lane, 2, 4); },
                    [](int lane) { return lane % 4 < 2 ? lane + 2 : lane; });
  expect_lanes<int>([](int lane) { return __shfl_up_sync(kAll, lane, 2, 4); },
                    [](int lane) { return lane % 4 >= 2 ? lane - 2 : lane; });
}

TEST_F(WarpTest, ShuffleXorExchangesPairs) {
  expect_lanes<long long>([](int lane) { return __shfl_xor_sync(kAll, (1LL << 40) + lane, 16); },
                          [](int lane) { return (1LL << 40) + (lane ^ 16); });
  expect_lanes<unsigned>([](int lane) { return __shfl_xor_sync(kAll, static_cast<unsigned>(lane), 1); },
                         [](int lane) { return static_cast<unsigned>(lane ^ 1); });
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

TEST_F(WarpTest, VotesSeeAllLanes) {
  expect_lanes<unsigned>([](int lane) { return __ballot_sync(kAll, lane % 3 == 0); },
                         [](int) { return 0x49249249U; });
  expect_lanes<int>([](int lane) { return __any_sync(kAll, lane == 20) * 2 + __any_sync(kAll, 0); },
                    [](int) { return 2; });
  expect_lanes<int>([](int lane) { return __all_sync(kAll, lane != 20) * 2 + __all_sync(kAll, 1); },
                    [](int) { return 1; });
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
