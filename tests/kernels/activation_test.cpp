// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ReLU at many sizes, in place, with NaN, infinities and signed zeros.
#include "kernels/cpu/activation.hpp"

#include "gtest/gtest.h"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <limits>

namespace lockstep::activation_test {
namespace {

using reference::random_tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::size_t kSizes[] = {0, 1, 3, 15, 16, 17, 31, 32, 63, 64, 100, 1024, 4321};

TEST(ReluTest, ForwardIsMaximumWithZero) {
  for (const std::size_t size : kSizes) {
    const auto x = random_tensor(size, 1);
    AlignedBuffer<float> y(size);
    cpu::relu_forward(size, x.data(), y.data());
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(y[i], std::max(x[i], 0.0F)) << "size " << size << " index " << i;
  }
}

TEST(ReluTest, ForwardWorksInPlace) {
  for (const std::size_t size : kSizes) {
    auto x = random_tensor(size, 2);
    std::vector<float> expected(size);
    cpu::relu_forward(size, x.data(), expected.data());
    cpu::relu_forward(size, x.data(), x.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), x.data())) << "size " << size;
  }
}

TEST(ReluTest, NanStaysNan) {
  const std::vector<float> x(37, kNan);
  std::vector<float> y(37);
  cpu::relu_forward(x.size(), x.data(), y.data());
  for (const float value : y) EXPECT_TRUE(std::isnan(value));
}

TEST(ReluTest, InfinityAndDenormalsPass) {
  const std::vector<float> x = {kInfinity, -kInfinity, 1e-45F, -1e-45F};
  std::vector<float> y(4);
  cpu::relu_forward(x.size(), x.data(), y.data());
  EXPECT_EQ(y, (std::vector<float>{kInfinity, 0, 1e-45F, 0}));
}

TEST(ReluTest, BackwardPassesGradientWherePositive) {
  for (const std::size_t size : kSizes) {
    const auto y = random_tensor(size, 3);
    auto dy = random_tensor(size, 4);
    AlignedBuffer<float> dx(size);
    cpu::relu_backward(size, y.data(), dy.data(), dx.data());
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(dx[i], y[i] > 0 ? dy[i] : 0) << "size " << size << " index " << i;
    cpu::relu_backward(size, y.data(), dy.data(), dy.data());
    EXPECT_TRUE(std::equal(dy.span().begin(), dy.span().end(), dx.data())) << "in place, size " << size;
  }
}

TEST(ReluTest, BackwardIsZeroAtZero) {
  const std::vector<float> y = {0.0F, -0.0F, 1.0F};
  const std::vector<float> dy = {kInfinity, kNan, 7.0F};
  std::vector<float> dx(3);
  cpu::relu_backward(3, y.data(), dy.data(), dx.data());
  EXPECT_EQ(dx, (std::vector<float>{0, 0, 7}));
}

TEST(ReluTest, BitsAreTheSameOnEverySimdTarget) {
  reference::expect_same_bits(reference::all_targets(), [] {
    auto x = random_tensor(333, 5);
    x[7] = -0.0F;
    x[8] = kNan;
    std::vector<float> y(x.size());
    cpu::relu_forward(x.size(), x.data(), y.data());
    return y;
  });
}

}  // namespace
}  // namespace lockstep::activation_test
