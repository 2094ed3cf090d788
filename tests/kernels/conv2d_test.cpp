// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution kernels against the naive loops, on every instruction set, and bit for bit against each other.
#include "kernels/cpu/conv2d.hpp"

#include "gtest/gtest.h"
#include "tests/kernels/poisoned_tensor.hpp"
#include "tests/kernels/reference/conv2d.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/summed_terms.hpp"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::conv2d_test {
namespace {

using reference::random_numbers;
using reference::worst_difference;
using test::PoisonedTensor;
using test::same_bits;

constexpr std::uint64_t kSeed = 20260417;

// batch, C, H, W, K, R, S, stride, padding
const std::vector<Conv2dShape> kShapes = {
    {64, 1, 28, 28, 10, 5, 5, 1, 0},  {64, 10, 12, 12, 20, 5, 5, 1, 0}, {16, 1, 28, 28, 20, 3, 3, 1, 0},
    {16, 20, 13, 13, 50, 5, 5, 1, 0}, {32, 3, 5, 7, 4, 3, 3, 1, 0},     {112, 2, 5, 7, 3, 3, 2, 1, 0},
    {48, 5, 6, 6, 7, 1, 1, 1, 0},     {16, 4, 5, 7, 11, 5, 7, 1, 0},    {32, 3, 8, 9, 13, 3, 3, 1, 1},
    {16, 7, 9, 8, 5, 5, 5, 1, 2},     {80, 2, 11, 10, 6, 3, 3, 2, 0},   {16, 3, 12, 13, 9, 3, 3, 2, 1},
    {32, 5, 10, 7, 2, 5, 3, 3, 2},    {16, 6, 9, 9, 8, 2, 2, 3, 0},     {64, 13, 4, 4, 17, 3, 3, 1, 1},
    {16, 1, 1, 1, 1, 1, 1, 1, 0},     {32, 1, 7, 5, 1, 7, 5, 1, 0},     {16, 11, 3, 3, 23, 1, 1, 2, 0},
    {48, 2, 6, 5, 21, 4, 1, 1, 0},    {16, 9, 5, 6, 31, 1, 4, 1, 1},    {112, 4, 7, 7, 12, 3, 3, 3, 1},
    {16, 2, 3, 4, 3, 5, 5, 1, 2},     {32, 8, 6, 6, 16, 1, 1, 1, 1},
};

std::string describe(const Conv2dShape& s) {
  std::ostringstream text;
  text << "seed " << kSeed << ", shape";
  for (const int size : {s.batch, s.in_channels, s.in_height, s.in_width, s.out_channels, s.kernel_height,
                         s.kernel_width, s.stride, s.padding}) {
    text << " " << size;
  }
  text << " (batch C H W K R S stride padding)";
  return text.str();
}

/// The arguments of all three directions, in double and as tensors.
struct Problem {
  Problem(const Conv2dShape& s, std::vector<double> x_numbers, std::vector<double> dy_numbers)
      : shape(s),
        x(std::move(x_numbers)),
        w(random_numbers(kSeed, 2, s.weight_size())),
        b(random_numbers(kSeed, 3, static_cast<std::size_t>(s.out_channels))),
        dy(std::move(dy_numbers)) {}
  explicit Problem(const Conv2dShape& s)
      : Problem(s, random_numbers(kSeed, 1, s.in_size()), random_numbers(kSeed, 4, s.out_size())) {}

  Conv2dShape shape;
  std::vector<double> x, w, b, dy;
  PoisonedTensor x_tensor{x}, w_tensor{w, 1}, b_tensor{b, 3}, dy_tensor{dy};
};

/// What the kernels make of a problem.
struct Results {
  explicit Results(const Problem& p) : y(p.dy.size()), dx(p.x.size()), dw(p.w.size(), 1), db(p.b.size(), 3) {
    cpu::conv2d_forward(p.shape, p.x_tensor.data(), p.w_tensor.data(), p.b_tensor.data(), y.data());
    cpu::conv2d_backward_data(p.shape, p.dy_tensor.data(), p.w_tensor.data(), dx.data());
    const auto run = [&](const GradientOutput& to) {
      cpu::conv2d_backward_weights(p.shape, GradientSplit(p.shape, kGrain), p.x_tensor.data(),
                                   p.dy_tensor.data(), to);
    };
    test::sum_terms(p.shape, kGrain, run, dw.data(), db.data());
  }
  static constexpr int kGrain = 200;  // larger than any batch of these tests
  PoisonedTensor y, dx, dw, db;
};

bool same_bits(const Results& a, const Results& b) {
  return same_bits(a.y, b.y) && same_bits(a.dx, b.dx) && same_bits(a.dw, b.dw) && same_bits(a.db, b.db);
}

TEST(Conv2dTest, AgreesWithNaiveLoopsOnEveryFastInstructionSet) {
  for (const Conv2dShape& shape : kShapes) {
    const Problem p(shape);
    const reference::Sums y = reference::conv2d_forward(shape, p.x, p.w, p.b);
    const reference::Sums dx = reference::conv2d_backward_data(shape, p.dy, p.w);
    const reference::Sums dw = reference::conv2d_backward_weights(shape, p.x, p.dy);
    const reference::Sums db = reference::conv2d_backward_bias(shape, p.dy);
    for (const std::int64_t target : reference::fast_targets()) {
      SCOPED_TRACE(describe(shape) + " on " + hwy::TargetName(target));
      const reference::ForcedTarget forced(target);
      const Results results(p);
      EXPECT_EQ(worst_difference(y, results.y.values()), "") << "forward";
      EXPECT_EQ(worst_difference(dx, results.dx.values()), "") << "data gradient";
      EXPECT_EQ(worst_difference(dw, results.dw.values()), "") << "weight gradient";
      EXPECT_EQ(worst_difference(db, results.db.values()), "") << "bias gradient";
    }
  }
}

TEST(Conv2dTest, BitsAreTheSameForEverySimdWidth) {
  const std::vector<std::int64_t> targets = reference::all_targets();
  if (targets.size() < 2) GTEST_SKIP() << "this machine has one such instruction set only";
  for (const Conv2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const Problem p(shape);
    const Results expected = [&] {
      const reference::ForcedTarget widest(targets.front());
      return Results(p);
    }();
    for (std::size_t i = 1; i < targets.size(); ++i) {
      const reference::ForcedTarget forced(targets[i]);
      EXPECT_TRUE(same_bits(expected, Results(p))) << hwy::TargetName(targets[i]);
    }
  }
}

/// Units that are read in parts: so many rows at a time as fit the cache, which is another number for each instruction set.
TEST(Conv2dTest, RowsThatDoNotFitTheCacheMakeNoDifference) {
  constexpr Conv2dShape kUnits[] = {{32, 64, 14, 30, 80, 1, 2, 1, 0}, {48, 70, 30, 29, 72, 1, 1, 1, 0}};
  for (const Conv2dShape& s : kUnits) {
    SCOPED_TRACE(describe(s));
    const PoisonedTensor x(random_numbers(kSeed, 1, s.in_size())), dy(random_numbers(kSeed, 4, s.out_size()));
    const std::size_t size = s.weight_size() + static_cast<std::size_t>(s.out_channels);
    reference::expect_same_bits(reference::fast_targets(), [&] {
      std::vector<float> terms(static_cast<std::size_t>(GradientSplit(s, s.batch).terms) * size, NAN);
      cpu::conv2d_backward_weights(s, GradientSplit(s, s.batch), x.data(), dy.data(),
                                   {terms.data(), terms.data() + s.weight_size(), size});
      return terms;
    });
  }
}

TEST(Conv2dTest, EarlierCallsLeaveNoTraceInTheBits) {
  const Problem first({32, 3, 8, 9, 13, 3, 3, 1, 1}), other({64, 10, 12, 12, 20, 5, 5, 1, 0});
  const Results before(first);
  const Results between(other);
  EXPECT_TRUE(same_bits(before, Results(first)));
  EXPECT_TRUE(same_bits(between, Results(other)));
}

TEST(Conv2dTest, PaddingColumnsWithZeroGradientDoNotChangeTheBits) {
  for (const Conv2dShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    Conv2dShape wider = shape;
    wider.batch += 32;
    const Problem p(shape);
    const Problem padded(wider, test::add_columns(p.x, shape.batch, 32, 0.75),
                         test::add_columns(p.dy, shape.batch, 32, 0.0));
    const Results expected(p), actual(padded);
    EXPECT_TRUE(same_bits(expected.dw, actual.dw));
    EXPECT_TRUE(same_bits(expected.db, actual.db));
    EXPECT_TRUE(test::same_columns(expected.y, shape.batch, actual.y, wider.batch));
    EXPECT_TRUE(test::same_columns(expected.dx, shape.batch, actual.dx, wider.batch));
  }
}

TEST(Conv2dReferenceTest, GradientsAgreeWithFiniteDifferences) {
  using Numbers = std::vector<double>;
  for (const Conv2dShape& shape : std::vector<Conv2dShape>{
           {2, 2, 4, 3, 3, 3, 2, 1, 0}, {1, 3, 5, 4, 2, 3, 3, 2, 1}, {2, 1, 4, 4, 2, 2, 3, 3, 1}}) {
    SCOPED_TRACE(describe(shape));
    const Problem p(shape);
    const auto loss = [&](const Numbers& x, const Numbers& w, const Numbers& b) {
      return reference::weighted_sum(p.dy, reference::conv2d_forward(shape, x, w, b).value);
    };
    using reference::linear_differences, reference::largest_error;
    const Numbers dx = linear_differences(p.x, [&](const Numbers& x) { return loss(x, p.w, p.b); });
    const Numbers dw = linear_differences(p.w, [&](const Numbers& w) { return loss(p.x, w, p.b); });
    const Numbers db = linear_differences(p.b, [&](const Numbers& b) { return loss(p.x, p.w, b); });
    EXPECT_LT(largest_error(reference::conv2d_backward_data(shape, p.dy, p.w), dx), 1e-9);
    EXPECT_LT(largest_error(reference::conv2d_backward_weights(shape, p.x, p.dy), dw), 1e-9);
    EXPECT_LT(largest_error(reference::conv2d_backward_bias(shape, p.dy), db), 1e-9);
  }
}

}  // namespace
}  // namespace lockstep::conv2d_test
