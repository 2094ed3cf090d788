// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kernels of fully connected layers against the naive loops, on every instruction set, and bit for bit
/// against each other.
#include "kernels/cpu/linear.hpp"

#include "gtest/gtest.h"
#include "tests/kernels/poisoned_tensor.hpp"
#include "tests/kernels/reference/linear.hpp"
#include "tests/kernels/reference/simd.hpp"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::linear_test {
namespace {

using reference::random_numbers;
using reference::worst_difference;
using test::PoisonedTensor;
using test::same_bits;

constexpr std::uint64_t kSeed = 20260418;

// batch, inputs, outputs
const std::vector<LinearShape> kShapes = {
    {64, 320, 50}, {64, 50, 10}, {16, 800, 128}, {32, 128, 10},  {112, 7, 5},  {48, 33, 17},
    {16, 1, 1},    {16, 1, 9},   {32, 9, 1},     {80, 15, 16},   {16, 16, 15}, {64, 17, 31},
    {16, 31, 6},   {48, 64, 64}, {32, 65, 11},   {96, 3, 100},   {16, 100, 3}, {112, 49, 7},
    {16, 784, 10}, {32, 47, 23}, {64, 2, 2},     {128, 130, 12}, {240, 5, 21},
};

std::string describe(const LinearShape& s) {
  std::ostringstream text;
  text << "seed " << kSeed << ", shape " << s.batch << " " << s.in_features << " " << s.out_features
       << " (batch inputs outputs)";
  return text.str();
}

std::size_t in_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.in_features);
}
std::size_t out_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.out_features);
}

/// The arguments of all three directions, in double and as tensors.
struct Problem {
  Problem(const LinearShape& s, std::vector<double> x_numbers, std::vector<double> dy_numbers)
      : shape(s),
        x(std::move(x_numbers)),
        w(random_numbers(kSeed, 2, s.weight_size())),
        b(random_numbers(kSeed, 3, static_cast<std::size_t>(s.out_features))),
        dy(std::move(dy_numbers)) {}
  explicit Problem(const LinearShape& s)
      : Problem(s, random_numbers(kSeed, 1, in_size(s)), random_numbers(kSeed, 4, out_size(s))) {}

  LinearShape shape;
  std::vector<double> x, w, b, dy;
  PoisonedTensor x_tensor{x}, w_tensor{w, 1}, b_tensor{b, 3}, dy_tensor{dy};
};

/// What the kernels make of a problem.
struct Results {
  explicit Results(const Problem& p) : y(p.dy.size()), dx(p.x.size()), dw(p.w.size(), 1), db(p.b.size(), 3) {
    cpu::linear_forward(p.shape, p.x_tensor.data(), p.w_tensor.data(), p.b_tensor.data(), y.data());
    cpu::linear_backward_data(p.shape, p.dy_tensor.data(), p.w_tensor.data(), dx.data());
    cpu::linear_backward_weights(p.shape, p.x_tensor.data(), p.dy_tensor.data(), dw.data(), db.data());
  }
  PoisonedTensor y, dx, dw, db;
};

bool same_bits(const Results& a, const Results& b) {
  return same_bits(a.y, b.y) && same_bits(a.dx, b.dx) && same_bits(a.dw, b.dw) && same_bits(a.db, b.db);
}

TEST(LinearTest, AgreesWithNaiveLoopsOnEveryFastInstructionSet) {
  for (const LinearShape& shape : kShapes) {
    const Problem p(shape);
    const reference::Sums y = reference::linear_forward(shape, p.x, p.w, p.b);
    const reference::Sums dx = reference::linear_backward_data(shape, p.dy, p.w);
    const reference::Sums dw = reference::linear_backward_weights(shape, p.x, p.dy);
    const reference::Sums db = reference::linear_backward_bias(shape, p.dy);
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

TEST(LinearTest, BitsAreTheSameForEverySimdWidth) {
  const std::vector<std::int64_t> targets = reference::all_targets();
  if (targets.size() < 2) GTEST_SKIP() << "this machine has one such instruction set only";
  for (const LinearShape& shape : kShapes) {
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

TEST(LinearTest, EarlierCallsLeaveNoTraceInTheBits) {
  const Problem first({48, 33, 17}), other({64, 320, 50});
  const Results before(first);
  const Results between(other);
  EXPECT_TRUE(same_bits(before, Results(first)));
  EXPECT_TRUE(same_bits(between, Results(other)));
}

TEST(LinearTest, PaddingColumnsWithZeroGradientDoNotChangeTheBits) {
  for (const LinearShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const int wide = shape.batch + 32;
    const Problem p(shape);
    const Problem padded({wide, shape.in_features, shape.out_features},
                         test::add_columns(p.x, shape.batch, 32, 0.75),
                         test::add_columns(p.dy, shape.batch, 32, 0.0));
    const Results expected(p), actual(padded);
    EXPECT_TRUE(same_bits(expected.dw, actual.dw));
    EXPECT_TRUE(same_bits(expected.db, actual.db));
    EXPECT_TRUE(test::same_columns(expected.y, shape.batch, actual.y, wide));
    EXPECT_TRUE(test::same_columns(expected.dx, shape.batch, actual.dx, wide));
  }
}

TEST(LinearReferenceTest, GradientsAgreeWithFiniteDifferences) {
  using Numbers = std::vector<double>;
  const LinearShape shape{3, 5, 4};
  SCOPED_TRACE(describe(shape));
  const Problem p(shape);
  const auto loss = [&](const Numbers& x, const Numbers& w, const Numbers& b) {
    return reference::weighted_sum(p.dy, reference::linear_forward(shape, x, w, b).value);
  };
  using reference::linear_differences, reference::largest_error;
  const Numbers dx = linear_differences(p.x, [&](const Numbers& x) { return loss(x, p.w, p.b); });
  const Numbers dw = linear_differences(p.w, [&](const Numbers& w) { return loss(p.x, w, p.b); });
  const Numbers db = linear_differences(p.b, [&](const Numbers& b) { return loss(p.x, p.w, b); });
  EXPECT_LT(largest_error(reference::linear_backward_data(shape, p.dy, p.w), dx), 1e-9);
  EXPECT_LT(largest_error(reference::linear_backward_weights(shape, p.x, p.dy), dw), 1e-9);
  EXPECT_LT(largest_error(reference::linear_backward_bias(shape, p.dy), db), 1e-9);
}

}  // namespace
}  // namespace lockstep::linear_test
