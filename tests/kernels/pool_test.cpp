// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Max- and average-pooling against naive loops, finite differences, ties, NaN and every SIMD target.
#include "common/error.hpp"
#include "gtest/gtest.h"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <limits>
#include <string>

namespace lockstep::pool_test {
namespace {

using reference::all_near;
using reference::random_tensor;
using reference::widen;

// batch, channels, height, width, kernel, stride, padding
const Pool2dShape kShapes[] = {
    {16, 1, 2, 2, 2, 2, 0},  {32, 3, 5, 7, 2, 2, 0}, {64, 10, 24, 24, 2, 2, 0}, {112, 5, 6, 4, 2, 2, 0},
    {64, 20, 8, 8, 2, 2, 0}, {16, 7, 9, 3, 2, 2, 0}, {16, 3, 5, 7, 3, 2, 1},    {32, 2, 7, 5, 3, 1, 1},
    {48, 1, 9, 9, 3, 3, 0},  {16, 2, 8, 8, 2, 1, 0}, {16, 4, 5, 5, 5, 1, 0},    {64, 1, 7, 7, 3, 2, 0},
    {16, 1, 4, 4, 1, 1, 0},  {32, 2, 6, 7, 4, 3, 2}, {16, 1, 3, 3, 2, 3, 1},    {16, 1, 20, 20, 16, 2, 8},
    {112, 3, 5, 7, 3, 1, 0}, {16, 2, 1, 9, 1, 2, 0}, {16, 2, 6, 6, 2, 4, 0},    {32, 1, 5, 5, 2, 2, 1},
};

std::string describe(const Pool2dShape& s) {
  return "batch " + std::to_string(s.batch) + ", " + std::to_string(s.channels) + " x " +
         std::to_string(s.in_height) + " x " + std::to_string(s.in_width) + ", kernel " +
         std::to_string(s.kernel) + ", stride " + std::to_string(s.stride) + ", padding " +
         std::to_string(s.padding);
}

/// What the kernel makes of x, in vectors.
struct MaxPooled {
  std::vector<float> y;
  std::vector<std::uint8_t> argmax;
};

MaxPooled max_pool(const Pool2dShape& shape, const AlignedBuffer<float>& x) {
  MaxPooled result{std::vector<float>(shape.out_size()), std::vector<std::uint8_t>(shape.out_size())};
  cpu::max_pool_forward(shape, x.data(), result.y.data(), result.argmax.data());
  return result;
}

/// Stale numbers in dx must not matter.
AlignedBuffer<float> dirty(std::size_t size) {
  return random_tensor(size, 99);
}

TEST(MaxPoolTest, ForwardEqualsNaiveLoop) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto x = random_tensor(shape.in_size(), 1);
    const auto expected = reference::max_pool_forward(shape, widen(x.span()));
    const MaxPooled actual = max_pool(shape, x);
    EXPECT_TRUE(all_near(actual.y, expected.y, 0.0));
    EXPECT_EQ(actual.argmax, expected.argmax);
  }
}

TEST(MaxPoolTest, FirstOfEqualsWins) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    auto x = random_tensor(shape.in_size(), 2);
    for (float& value : x.span()) value = std::round(value);
    EXPECT_EQ(max_pool(shape, x).argmax, reference::max_pool_forward(shape, widen(x.span())).argmax);
  }
}

TEST(MaxPoolTest, NanBeatsEveryNumber) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    auto x = random_tensor(shape.in_size(), 3);
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = std::numeric_limits<float>::quiet_NaN();
    const auto expected = reference::max_pool_forward(shape, widen(x.span()));
    const MaxPooled actual = max_pool(shape, x);
    EXPECT_EQ(actual.argmax, expected.argmax);
    for (std::size_t i = 0; i < actual.y.size(); ++i)
      EXPECT_EQ(std::isnan(actual.y[i]), std::isnan(expected.y[i]));
  }
}

TEST(MaxPoolTest, MinusInfinityEverywhereIsFoundInsideTheImage) {
  const Pool2dShape shape = {16, 1, 5, 5, 3, 2, 1};
  AlignedBuffer<float> x(shape.in_size());
  for (float& value : x.span()) value = -std::numeric_limits<float>::infinity();
  const MaxPooled actual = max_pool(shape, x);
  EXPECT_EQ(actual.argmax, reference::max_pool_forward(shape, widen(x.span())).argmax);
  EXPECT_EQ(actual.argmax[0], 4);  // row 1, column 1 of the window is the corner of the image
}

TEST(MaxPoolTest, BackwardEqualsNaiveLoop) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto dy = random_tensor(shape.out_size(), 4);
    const MaxPooled forward = max_pool(shape, random_tensor(shape.in_size(), 5));
    auto dx = dirty(shape.in_size());
    cpu::max_pool_backward(shape, dy.data(), forward.argmax.data(), dx.data());
    EXPECT_TRUE(
        all_near(dx.span(), reference::max_pool_backward(shape, widen(dy.span()), forward.argmax), 1e-6));
  }
}

TEST(MaxPoolTest, ReferenceGradientEqualsFiniteDifferences) {
  const Pool2dShape shape = {1, 2, 5, 6, 3, 2, 1};
  const auto x = widen(random_tensor(shape.in_size(), 6).span());
  const auto dy = widen(random_tensor(shape.out_size(), 7).span());
  const auto loss = [&](const std::vector<double>& at) {
    const auto y = reference::max_pool_forward(shape, at).y;
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  const auto gradient = reference::max_pool_backward(shape, dy, reference::max_pool_forward(shape, x).argmax);
  const auto numeric = reference::finite_differences(x, loss, 1e-7);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(gradient[i], numeric[i], 1e-6) << "index " << i;
}

TEST(MaxPoolTest, KernelTooLargeForOneByteIsRefused) {
  const Pool2dShape shape = {16, 1, 17, 17, 17, 1, 0};
  const auto x = random_tensor(shape.in_size(), 8);
  EXPECT_THROW(max_pool(shape, x), InternalError);
}

TEST(AvgPoolTest, ForwardEqualsNaiveLoop) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto x = random_tensor(shape.in_size(), 9);
    AlignedBuffer<float> y(shape.out_size());
    cpu::avg_pool_forward(shape, x.data(), y.data());
    EXPECT_TRUE(all_near(y.span(), reference::avg_pool_forward(shape, widen(x.span())), 1e-6));
  }
}

TEST(AvgPoolTest, BackwardEqualsNaiveLoop) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto dy = random_tensor(shape.out_size(), 10);
    auto dx = dirty(shape.in_size());
    cpu::avg_pool_backward(shape, dy.data(), dx.data());
    EXPECT_TRUE(all_near(dx.span(), reference::avg_pool_backward(shape, widen(dy.span())), 1e-6));
  }
}

TEST(AvgPoolTest, ReferenceGradientEqualsFiniteDifferences) {
  const Pool2dShape shape = {1, 2, 5, 6, 3, 2, 1};
  const auto x = widen(random_tensor(shape.in_size(), 11).span());
  const auto dy = widen(random_tensor(shape.out_size(), 12).span());
  const auto loss = [&](const std::vector<double>& at) {
    const auto y = reference::avg_pool_forward(shape, at);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  const auto gradient = reference::avg_pool_backward(shape, dy);
  const auto numeric = reference::finite_differences(x, loss);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(gradient[i], numeric[i], 1e-6) << "index " << i;
}

/// Outputs and gradients of both kinds of pooling, one after the other.
std::vector<float> pool_everything(const Pool2dShape& shape) {
  const auto x = random_tensor(shape.in_size(), 13);
  const auto dy = random_tensor(shape.out_size(), 14);
  MaxPooled forward = max_pool(shape, x);
  std::vector<float> all = forward.y;
  std::vector<float> part(shape.out_size());
  cpu::avg_pool_forward(shape, x.data(), part.data());
  all.insert(all.end(), part.begin(), part.end());
  part.resize(shape.in_size());
  cpu::max_pool_backward(shape, dy.data(), forward.argmax.data(), part.data());
  all.insert(all.end(), part.begin(), part.end());
  cpu::avg_pool_backward(shape, dy.data(), part.data());
  all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(PoolTest, BitsAreTheSameOnEverySimdTarget) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    reference::expect_same_bits(reference::all_targets(), [&] { return pool_everything(shape); });
  }
}

}  // namespace
}  // namespace lockstep::pool_test
