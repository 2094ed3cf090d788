// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Activations with a curve, sums and the global pool on a device: the bits of the CPU.
#include "kernels/cpu/ops.hpp"
#include "kernels/shapes.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {
namespace {

using reference::kActivations;
using reference::spread_numbers;

/// Numbers of every size, with the ends among them.
std::vector<float> numbers(std::size_t size) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {
      kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 0, -0.0F, 1e-45F, -1e-45F, 1e-38F,
      3e38F,     -3e38F};
  const std::vector<float> spread = spread_numbers(size);
  x.insert(x.end(), spread.begin(), spread.end());
  x.resize(size);
  return x;
}

class DeviceActivationTest : public testing::Test {
 protected:
  DeviceRig rig_;
};

TEST_F(DeviceActivationTest, HasTheBitsOfTheCpu) {
  for (const auto& [kind, name, units] : kActivations) {
    for (const std::size_t size : {1, 3, 16, 1021, 20000}) {
      SCOPED_TRACE(fmt::format("{}, size {}", name, size));
      const std::vector<float> x = numbers(size), dy(x.rbegin(), x.rend());
      std::vector<float> y(size), dx(size);
      cpu::activation_forward(kind, size, x.data(), y.data());
      const auto from = rig_.upload(x), gradient = rig_.upload(dy);
      const auto to = rig_.poisoned<float>(size);
      rig_.ops().activation_forward(rig_.stream(), kind, size, from.data(), to.data());
      EXPECT_EQ(bits_of(rig_.download(to)), bits_of(y));
      const std::vector<float>& saved = kind.saves_input() ? x : y;
      cpu::activation_backward(kind, size, saved.data(), dy.data(), dx.data());
      const auto kept = rig_.upload(saved);
      rig_.ops().activation_backward(rig_.stream(), kind, size, kept.data(), gradient.data(),
                                     gradient.data());
      EXPECT_EQ(bits_of(rig_.download(gradient)), bits_of(dx));
    }
  }
}

TEST_F(DeviceActivationTest, SumHasTheBitsOfTheCpu) {
  for (const std::size_t size : {1, 4, 37, 4096}) {
    const std::vector<float> a = numbers(size), b(a.rbegin(), a.rend());
    std::vector<float> y(size);
    cpu::add(size, a.data(), b.data(), y.data());
    const auto from = rig_.upload(a), to = rig_.upload(b);
    rig_.ops().add(rig_.stream(), size, from.data(), to.data(), to.data());
    EXPECT_EQ(bits_of(rig_.download(to)), bits_of(y)) << "in place, size " << size;
  }
}

TEST_F(DeviceActivationTest, GlobalPoolHasTheBitsOfTheCpu) {
  for (const ImageShape shape : {ImageShape{1, 1, 1}, {3, 2, 1}, {2, 3, 5}, {5, 7, 8}, {1, 1, 19}}) {
    constexpr int kBatch = 32;  // without padding columns on the CPU
    const auto size = static_cast<std::size_t>(shape.features() * kBatch);
    const auto outputs = static_cast<std::size_t>(shape.channels * kBatch);
    const std::vector<float> x = random_floats(size, 3);
    std::vector<float> y(outputs), dx(size);
    cpu::global_avg_pool_forward(shape, kBatch, x.data(), y.data());
    cpu::global_avg_pool_backward(shape, kBatch, y.data(), dx.data());
    const auto from = rig_.upload(x);
    const auto to = rig_.poisoned<float>(outputs), gradient = rig_.poisoned<float>(size);
    rig_.ops().global_avg_pool_forward(rig_.stream(), shape, kBatch, from.data(), to.data());
    rig_.ops().global_avg_pool_backward(rig_.stream(), shape, kBatch, to.data(), gradient.data());
    EXPECT_EQ(rig_.download(to), y);
    EXPECT_EQ(rig_.download(gradient), dx);

    double sum = 0;
    const int pixels = shape.height * shape.width;
    for (int p = 0; p < pixels; ++p) sum += x[static_cast<std::size_t>(p * kBatch + 5)];
    EXPECT_NEAR(y[5], sum / pixels, 1e-6);
    EXPECT_EQ(dx[5], y[5] * (1.0F / static_cast<float>(pixels)));
  }
}

}  // namespace
}  // namespace lockstep::test
