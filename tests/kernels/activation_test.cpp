// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ReLU at many sizes, in place, with NaN, infinities and signed zeros.
#include "kernels/cpu/activation.hpp"

#include "gtest/gtest.h"
#include "kernels/ops.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <limits>

namespace lockstep::activation_test {
namespace {

using reference::random_tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::size_t kSizes[] = {0, 1, 3, 15, 16, 17, 31, 32, 63, 64, 100, 1024, 4321};

/// Which numbers are positive, as relu_forward remembers it; behind it a byte that nobody may touch.
struct Signs {
  explicit Signs(std::size_t size) : bytes(sign_bytes(size) + 1, 0xA5) {}
  std::uint8_t* data() { return bytes.data(); }
  bool ends() const { return bytes.back() == 0xA5; }
  std::vector<std::uint8_t> bytes;
};

TEST(ReluTest, ForwardIsMaximumWithZero) {
  for (const std::size_t size : kSizes) {
    const auto x = random_tensor(size, 1);
    AlignedBuffer<float> y(size), evaluated(size);
    Signs signs(size);
    cpu::relu_forward(size, x.data(), y.data(), signs.data());
    cpu::relu_forward(size, x.data(), evaluated.data(), nullptr);
    EXPECT_TRUE(signs.ends()) << "size " << size;
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(y[i], std::max(x[i], 0.0F)) << "size " << size << " index " << i;
      ASSERT_EQ(evaluated[i], y[i]) << "size " << size << " index " << i;
    }
  }
}

TEST(ReluTest, ForwardWorksInPlace) {
  for (const std::size_t size : kSizes) {
    auto x = random_tensor(size, 2);
    std::vector<float> expected(size);
    Signs signs(size), in_place(size);
    cpu::relu_forward(size, x.data(), expected.data(), signs.data());
    cpu::relu_forward(size, x.data(), x.data(), in_place.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), x.data())) << "size " << size;
    EXPECT_EQ(signs.bytes, in_place.bytes) << "size " << size;
  }
}

TEST(ReluTest, NanStaysNan) {
  const std::vector<float> x(37, kNan);
  std::vector<float> y(37);
  Signs signs(37);
  cpu::relu_forward(x.size(), x.data(), y.data(), signs.data());
  for (const float value : y) EXPECT_TRUE(std::isnan(value));
}

TEST(ReluTest, InfinityAndDenormalsPass) {
  const std::vector<float> x = {kInfinity, -kInfinity, 1e-45F, -1e-45F};
  std::vector<float> y(4);
  Signs signs(4);
  cpu::relu_forward(x.size(), x.data(), y.data(), signs.data());
  EXPECT_EQ(y, (std::vector<float>{kInfinity, 0, 1e-45F, 0}));
  EXPECT_EQ(signs.bytes[0], 0b0101);
}

TEST(ReluTest, BackwardPassesGradientWherePositive) {
  for (const std::size_t size : kSizes) {
    const auto x = random_tensor(size, 3);
    auto dy = random_tensor(size, 4);
    AlignedBuffer<float> y(size), dx(size);
    Signs signs(size);
    cpu::relu_forward(size, x.data(), y.data(), signs.data());
    cpu::relu_backward(size, signs.data(), dy.data(), dx.data());
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(dx[i], x[i] > 0 ? dy[i] : 0) << "size " << size << " index " << i;
    cpu::relu_backward(size, signs.data(), dy.data(), dy.data());
    EXPECT_TRUE(std::equal(dy.span().begin(), dy.span().end(), dx.data())) << "in place, size " << size;
  }
}

TEST(ReluTest, BackwardIsZeroAtZeroAndAtNan) {
  const std::vector<float> x = {0.0F, -0.0F, 1.0F, kNan};
  const std::vector<float> dy = {kInfinity, kNan, 7.0F, 3.0F};
  std::vector<float> y(4), dx(4);
  Signs signs(4);
  cpu::relu_forward(4, x.data(), y.data(), signs.data());
  cpu::relu_backward(4, signs.data(), dy.data(), dx.data());
  EXPECT_EQ(dx, (std::vector<float>{0, 0, 7, 0}));
}

TEST(ReluTest, BitsAreTheSameOnEverySimdTarget) {
  reference::expect_same_bits(reference::all_targets(), [] {
    auto x = random_tensor(333, 5);
    x[7] = -0.0F;
    x[8] = kNan;
    std::vector<float> y(x.size());
    Signs signs(x.size());
    cpu::relu_forward(x.size(), x.data(), y.data(), signs.data());
    const auto dy = random_tensor(333, 6);
    std::vector<float> dx(dy.size());
    cpu::relu_backward(dy.size(), signs.data(), dy.data(), dx.data());
    y.insert(y.end(), dx.begin(), dx.end());
    y.insert(y.end(), signs.bytes.begin(), signs.bytes.end());
    return y;
  });
}

}  // namespace
}  // namespace lockstep::activation_test
