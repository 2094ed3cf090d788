// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pools of any window on a device. The bits of the CPU, which agrees with naive loops
/// (tests/kernels/pool_test.cpp), and ties, NaN and infinities.
#include "common/error.hpp"
#include "tests/kernels/device/cpu_columns.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/reference/layers.hpp"

namespace lockstep::test::pool_test {
namespace {

using reference::describe;

// batch, channels, height, width, kernel, stride, padding
const Pool2dShape kShapes[] = {
    {1, 1, 2, 2, 2, 2, 0},    {1, 2, 5, 7, 2, 2, 0},  {17, 2, 5, 7, 2, 2, 0}, {100, 1, 5, 7, 2, 2, 0},
    {4, 3, 8, 8, 2, 2, 0},    {8, 2, 7, 9, 2, 2, 0},  {64, 1, 6, 4, 2, 2, 0}, {4, 2, 5, 7, 3, 2, 1},
    {1, 2, 7, 5, 3, 1, 1},    {3, 2, 9, 9, 3, 3, 0},  {16, 1, 8, 8, 2, 1, 0}, {2, 3, 5, 5, 5, 1, 0},
    {12, 1, 7, 7, 3, 2, 0},   {5, 1, 4, 4, 1, 1, 0},  {4, 2, 6, 7, 4, 3, 2},  {7, 1, 3, 3, 2, 3, 1},
    {2, 1, 20, 20, 16, 2, 8}, {17, 2, 5, 7, 3, 1, 0}, {4, 2, 1, 9, 1, 2, 0},  {20, 1, 6, 6, 2, 4, 0},
    {8, 1, 5, 5, 2, 2, 1},    {1, 9, 4, 4, 2, 2, 0},
};

/// Few different numbers, so that windows have ties; some NaN and infinities.
std::vector<double> coarse_numbers(std::size_t size, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<double> numbers(size);
  for (double& number : numbers) {
    const auto draw = engine() % 64;
    number = draw == 0   ? std::numeric_limits<double>::quiet_NaN()
             : draw == 1 ? -std::numeric_limits<double>::infinity()
                         : static_cast<double>(draw % 5) - 2;
  }
  return numbers;
}

class DevicePoolTest : public testing::Test {
 protected:
  struct MaxPooled {
    std::vector<float> y;
    std::vector<std::uint8_t> argmax;
  };

  MaxPooled max_forward(const Pool2dShape& shape, const std::vector<double>& x) {
    const auto from = rig_.upload(x);
    const auto y = rig_.poisoned<float>(shape.out_size());
    const auto argmax = rig_.poisoned<std::uint8_t>(shape.out_size());
    rig_.ops().max_pool_forward(rig_.stream(), shape, from.data(), y.data(), argmax.data());
    return {rig_.download(y), rig_.download(argmax)};
  }
  std::vector<float> max_backward(const Pool2dShape& shape, const std::vector<double>& dy,
                                  const std::vector<std::uint8_t>& argmax) {
    const auto from = rig_.upload(dy);
    const auto taps = rig_.upload(argmax);
    const auto dx = rig_.poisoned<float>(shape.in_size());
    rig_.ops().max_pool_backward(rig_.stream(), shape, from.data(), taps.data(), dx.data());
    return rig_.download(dx);
  }
  std::vector<float> avg_forward(const Pool2dShape& shape, const std::vector<double>& x) {
    const auto from = rig_.upload(x);
    const auto y = rig_.poisoned<float>(shape.out_size());
    rig_.ops().avg_pool_forward(rig_.stream(), shape, from.data(), y.data());
    return rig_.download(y);
  }
  std::vector<float> avg_backward(const Pool2dShape& shape, const std::vector<double>& dy) {
    const auto from = rig_.upload(dy);
    const auto dx = rig_.poisoned<float>(shape.in_size());
    rig_.ops().avg_pool_backward(rig_.stream(), shape, from.data(), dx.data());
    return rig_.download(dx);
  }

  DeviceRig rig_;
};

TEST_F(DevicePoolTest, FirstMaximumAndNanWin) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    for (const auto& x :
         {coarse_numbers(shape.in_size(), 1), std::vector<double>(shape.in_size(), -HUGE_VAL)}) {
      const auto expected = reference::max_pool_forward(shape, x);
      const MaxPooled actual = max_forward(shape, x);
      EXPECT_EQ(actual.argmax, expected.argmax);
      EXPECT_EQ(bits_of(actual.y), bits_of({expected.y.begin(), expected.y.end()}));
    }
  }
}

/// The place of a maximum in its window is a byte.
TEST_F(DevicePoolTest, AWindowHasAtMost16Rows) {
  const auto pool = [&](int kernel) {
    const Pool2dShape shape{8, 1, kernel, kernel, kernel, 1, 0};
    max_forward(shape, std::vector<double>(shape.in_size()));
  };
  EXPECT_NO_THROW(pool(16));
  EXPECT_THROW(pool(17), InternalError);
}

TEST_F(DevicePoolTest, HasTheBitsOfTheCpuInEveryOrderOfThreads) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    Pool2dShape padded = shape;
    padded.batch = padded_columns(shape.batch);
    const auto x = random_numbers(shape.in_size(), 8), dy = random_numbers(shape.out_size(), 9);
    const auto cpu_x = to_cpu(x, shape.batch), cpu_dy = to_cpu(dy, shape.batch);
    auto y = cpu_room(dy.size(), shape.batch), dx = cpu_room(x.size(), shape.batch);
    std::vector<std::uint8_t> argmax(padded.out_size());
    const MaxPooled pooled = max_forward(shape, x);
    cpu::max_pool_forward(padded, cpu_x.data(), y.data(), argmax.data());
    expect_bits_of_cpu(y, pooled.y, shape.batch, "maxima");
    cpu::max_pool_backward(padded, cpu_dy.data(), argmax.data(), dx.data());
    expect_bits_of_cpu(
        dx, same_in_every_order([&] { return max_backward(shape, dy, max_forward(shape, x).argmax); }),
        shape.batch, "gradient of maxima");
    cpu::avg_pool_forward(padded, cpu_x.data(), y.data());
    expect_bits_of_cpu(y, same_in_every_order([&] { return avg_forward(shape, x); }), shape.batch,
                       "averages");
    cpu::avg_pool_backward(padded, cpu_dy.data(), dx.data());
    expect_bits_of_cpu(dx, same_in_every_order([&] { return avg_backward(shape, dy); }), shape.batch,
                       "gradient of averages");
  }
}

}  // namespace
}  // namespace lockstep::test::pool_test
