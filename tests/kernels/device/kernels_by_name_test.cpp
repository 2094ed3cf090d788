// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kernels called by name: tiles that only other chips take, an absent device, and the loss's exp and log.
#include "common/error.hpp"
#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/emulation/order.hpp"
#include "tests/kernels/device/problems.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::test::chips_test {

// The chip decides into which tiles kernels cut a layer, and nothing else: all have the same bits. The emulator takes
// any chip.

namespace {

// batch, C, H, W, K, R, S, stride, padding
const Conv2dShape kConvolutions[] = {
    {33, 3, 12, 12, 10, 5, 5, 1, 0}, {40, 5, 9, 13, 11, 5, 5, 1, 0}, {5, 7, 10, 10, 12, 3, 3, 1, 1},
    {3, 4, 9, 20, 10, 3, 3, 1, 0},   {2, 10, 8, 18, 6, 5, 5, 1, 2},  {17, 2, 3, 5, 5, 3, 3, 1, 0},
    {33, 4, 9, 8, 8, 5, 5, 1, 0},    {2, 7, 5, 8, 16, 3, 3, 1, 1},   {36, 5, 11, 11, 10, 5, 5, 1, 0},
    {3, 4, 26, 18, 16, 3, 3, 1, 0},  // terms of six units: 12 warps, with more shared memory than a T4 has
};

/// 2 to 40 tiles of each size.
const LinearShape kLinear[] = {{150, 320, 50}, {64, 800, 33}, {70, 45, 130}, {260, 128, 10}, {33, 1000, 9}};

constexpr std::size_t kManyBytes = 227 * 1024;  // an H100's
constexpr emulated::Chip kT4 = {40};
constexpr emulated::Chip kConvolutionChips[] = {
    {1, kManyBytes}, {3}, {4, kManyBytes}, {16}, kT4, {60}, {132}, {1000, kManyBytes}};
constexpr emulated::Chip kLinearChips[] = {{1}, {8}, {20}, {50}, {132}, {100'000}};

class ChipsTest : public testing::Test {
 protected:
  ~ChipsTest() override { emulated::set_most_shared_bytes(kManyBytes); }
  struct Results {
    std::vector<float> y, dx;
    std::vector<std::int64_t> sums;
  };

  template <class Shape>
  Results run(const OnDevice<Shape>& p, const emulated::Chip& chip) {
    emulated::set_most_shared_bytes(chip.shared_bytes);
    const auto y = rig_.poisoned<float>(output_size(p.shape)), dx = rig_.poisoned<float>(input_size(p.shape));
    const ExactSums sums(rig_, p.shape, 4e6F);
    DeviceProperties properties;
    properties.multiprocessors = chip.multiprocessors;
    properties.max_shared_bytes_per_block = chip.shared_bytes;
    emulated::NativeOps ops(properties);
    using Ops = OpsOf<Shape>;
    std::invoke(Ops::kForward, ops, rig_.stream(), p.shape, p.x(), p.w(), p.b(), Epilogue{}, nullptr,
                y.data(), nullptr);
    Ops::backward_data(ops, rig_.stream(), p.shape, p.dy(), p.w(), nullptr, dx.data());
    std::invoke(Ops::kBackwardWeights, ops, rig_.stream(), p.shape, 32, p.x(), p.dy(), sums.gradient);
    return {rig_.download(y), rig_.download(dx), sums.all()};
  }

  template <class Shape>
  void expect_same_bits(std::span<const Shape> shapes, std::span<const emulated::Chip> chips) {
    for (const Shape& shape : shapes) {
      const OnDevice<Shape> on_device(rig_, LayerProblem<Shape>(shape));
      const Results expected = run(on_device, {1});
      for (const emulated::Chip& chip : chips) {
        SCOPED_TRACE(describe(shape) + ", " + std::to_string(chip.multiprocessors) + " multiprocessors, " +
                     std::to_string(chip.shared_bytes) + " bytes of shared memory");
        const Results actual = run(on_device, chip);
        EXPECT_EQ(actual.y, expected.y);
        EXPECT_EQ(actual.dx, expected.dx);
        EXPECT_EQ(actual.sums, expected.sums);
      }
    }
  }

 private:
  DeviceRig rig_;
};

TEST_F(ChipsTest, ConvolutionsHaveTheSameBitsOnEveryChip) {
  expect_same_bits<Conv2dShape>(kConvolutions, kConvolutionChips);
}

TEST_F(ChipsTest, FullyConnectedLayersHaveTheSameBitsOnEveryChip) {
  expect_same_bits<LinearShape>(kLinear, kLinearChips);
}

}  // namespace

}  // namespace lockstep::test::chips_test

namespace lockstep::test::native_ops_test {
namespace {

/// The only one here is device 0.
TEST(NativeOpsTest, KernelsStartOnTheDeviceOfTheirOps) {
  DeviceRig rig;
  const auto x = rig.zeroed<float>(1);
  DeviceProperties second;
  second.index = 1;
  emulated::NativeOps ops(second);
  expect_error<InternalError>([&] { ops.add(rig.stream(), 1, x.data(), x.data(), x.data()); },
                              {"cudaSetDevice(device_)", "cudaErrorInvalidDevice"});
}

}  // namespace
}  // namespace lockstep::test::native_ops_test

namespace lockstep::test::exp_log_test {

// The exp and log of the loss are those of the math library, nearly.

namespace {

using emulated::ScalarMath, emulated::exp_of_loss, emulated::log_of_loss;

/// In units in the last place of the exact value; below 2^-126 in those of 2^-149.
double error_in_ulp(float actual, double exact) {
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::abs(static_cast<double>(actual) - exact) / ulp;
}

TEST(ExpLogTest, BothAreWithinTwoUnits) {
  for (int i = 0; i < 200'000; ++i) {
    const float x = -static_cast<float>(i) * 5.1e-4F;
    ASSERT_LE(error_in_ulp(exp_of_loss<ScalarMath>(x), std::exp(static_cast<double>(x))), 2) << "e^" << x;
  }
  for (float x = 1 + 0x1p-23F; x < 1e6F; x += (x - 1) * 1e-4F + 0x1p-22F)
    ASSERT_LE(error_in_ulp(log_of_loss<ScalarMath>(x), std::log(static_cast<double>(x))), 2) << "ln " << x;
}

TEST(ExpLogTest, EdgesAreThoseOfTheMathLibrary) {
  EXPECT_EQ(exp_of_loss<ScalarMath>(0.0F), 1.0F);
  EXPECT_EQ(exp_of_loss<ScalarMath>(-INFINITY), 0.0F);
  EXPECT_EQ(exp_of_loss<ScalarMath>(-1000.0F), 0.0F);
  EXPECT_EQ(log_of_loss<ScalarMath>(1.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exp_of_loss<ScalarMath>(NAN)));
  EXPECT_TRUE(std::isnan(log_of_loss<ScalarMath>(NAN)));
}

}  // namespace
}  // namespace lockstep::test::exp_log_test
