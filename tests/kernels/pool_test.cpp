// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Max- and average-pooling against naive loops, finite differences, ties, NaN and every SIMD target.
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::pool_test {
namespace {

using reference::all_near;
using reference::describe;
using reference::random_tensor;
using reference::widen;

// batch, channels, height, width, kernel, stride, padding
const Pool2dShape kShapes[] = {
    {16, 1, 2, 2, 2, 2, 0},  {32, 3, 5, 7, 2, 2, 0}, {64, 10, 24, 24, 2, 2, 0}, {112, 5, 6, 4, 2, 2, 0},
    {64, 20, 8, 8, 2, 2, 0}, {16, 7, 9, 3, 2, 2, 0}, {16, 3, 5, 7, 3, 2, 1},    {32, 2, 7, 5, 3, 1, 1},
    {48, 1, 9, 9, 3, 3, 0},  {16, 2, 8, 8, 2, 1, 0}, {16, 4, 5, 5, 5, 1, 0},    {64, 1, 7, 7, 3, 2, 0},
    {16, 1, 4, 4, 1, 1, 0},  {32, 2, 6, 7, 4, 3, 2}, {16, 1, 3, 3, 2, 3, 1},    {16, 1, 20, 20, 16, 2, 8},
    {112, 3, 5, 7, 3, 1, 0}, {16, 2, 1, 9, 1, 2, 0}, {16, 2, 6, 6, 2, 4, 0},    {32, 1, 5, 5, 2, 2, 1},
    {16, 2, 6, 8, 2, 3, 0},  {32, 3, 5, 7, 2, 3, 0},
};

/// Result of the kernel for x, in vectors.
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

/// Normal numbers, in which no two are equal; the same rounded, of which the first of equals wins. And with
/// NaN, which beats every number; and minus infinity everywhere, which is found inside the image.
std::vector<AlignedBuffer<float>> tried_images(const Pool2dShape& shape) {
  std::vector<AlignedBuffer<float>> images;
  for (const unsigned seed : {1, 2, 3, 4}) images.push_back(random_tensor(shape.in_size(), seed));
  for (float& value : images[1].span()) value = std::round(value);
  for (std::size_t i = 0; i < images[2].size(); i += 3)
    images[2][i] = std::numeric_limits<float>::quiet_NaN();
  std::ranges::fill(images[3].span(), -std::numeric_limits<float>::infinity());
  return images;
}

TEST(MaxPoolTest, ForwardEqualsNaiveLoop) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    for (const auto& x : tried_images(shape)) {
      const auto expected = reference::max_pool_forward(shape, widen(x.span()));
      const MaxPooled actual = max_pool(shape, x);
      EXPECT_EQ(actual.argmax, expected.argmax);
      for (std::size_t i = 0; i < actual.y.size(); ++i)
        EXPECT_TRUE(actual.y[i] == expected.y[i] || (std::isnan(actual.y[i]) && std::isnan(expected.y[i])))
            << "index " << i;
    }
  }
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

TEST(MaxPoolTest, KernelTooLargeForOneByteIsRefused) {
  const Pool2dShape shape = {16, 1, 17, 17, 17, 1, 0};
  const auto x = random_tensor(shape.in_size(), 8);
  EXPECT_THROW(max_pool(shape, x), InternalError);
}

TEST(AvgPoolTest, EqualsNaiveLoop) {
  for (const Pool2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const auto x = random_tensor(shape.in_size(), 9), dy = random_tensor(shape.out_size(), 10);
    AlignedBuffer<float> y(shape.out_size());
    auto dx = dirty(shape.in_size());
    cpu::avg_pool_forward(shape, x.data(), y.data());
    cpu::avg_pool_backward(shape, dy.data(), dx.data());
    EXPECT_TRUE(all_near(y.span(), reference::avg_pool_forward(shape, widen(x.span())), 1e-6));
    EXPECT_TRUE(all_near(dx.span(), reference::avg_pool_backward(shape, widen(dy.span())), 1e-6));
  }
}

TEST(PoolTest, ReferenceGradientsEqualFiniteDifferences) {
  const Pool2dShape shape = {1, 2, 5, 6, 3, 2, 1};
  const auto x = widen(random_tensor(shape.in_size(), 6).span());
  const auto dy = widen(random_tensor(shape.out_size(), 7).span());
  const auto expect_gradient = [&](const std::vector<double>& gradient, const auto& forward) {
    const auto numeric = reference::finite_differences(
        x, [&](const std::vector<double>& at) { return reference::weighted_sum(dy, forward(at)); }, 1e-7);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(gradient[i], numeric[i], 1e-6) << "index " << i;
  };
  const auto argmax = reference::max_pool_forward(shape, x).argmax;
  expect_gradient(reference::max_pool_backward(shape, dy, argmax),
                  [&](const std::vector<double>& at) { return reference::max_pool_forward(shape, at).y; });
  expect_gradient(reference::avg_pool_backward(shape, dy),
                  [&](const std::vector<double>& at) { return reference::avg_pool_forward(shape, at); });
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
