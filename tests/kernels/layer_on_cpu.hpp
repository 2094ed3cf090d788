// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Contract of every kernel of a layer with weights on a CPU: it agrees with naive loops. Its bits depend on
/// no instruction set, no earlier call and no padding column.
#pragma once

#include "tests/kernels/layer_problem.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::test {

/// A problem, and its arguments as tensors.
template <class Shape>
struct CpuProblem : LayerProblem<Shape> {
  using LayerProblem<Shape>::LayerProblem;
  PoisonedTensor x_tensor{this->x}, w_tensor{this->w, 1}, b_tensor{this->b, 3}, dy_tensor{this->dy};
};

/// Room for what the kernels make of a problem.
template <class Shape>
struct CpuRoom {
  explicit CpuRoom(const CpuProblem<Shape>& p)
      : y(p.dy.size()), dx(p.x.size()), dw(p.w.size(), 1), db(p.b.size(), 3) {}
  PoisonedTensor y, dx, dw, db;
};

template <class Shape>
bool same_bits(const CpuRoom<Shape>& a, const CpuRoom<Shape>& b) {
  return same_bits(a.y, b.y) && same_bits(a.dx, b.dx) && same_bits(a.dw, b.dw) && same_bits(a.db, b.db);
}

/// Results of the naive loops.
template <class Shape>
struct NaiveSums {
  explicit NaiveSums(const LayerProblem<Shape>& p)
      : y(reference::layer_forward(p.shape, p.x, p.w, p.b)),
        dx(reference::layer_backward_data(p.shape, p.dy, p.w)),
        dw(reference::layer_backward_weights(p.shape, p.x, p.dy)),
        db(reference::layer_backward_bias(p.shape, p.dy)) {}
  reference::Sums y, dx, dw, db;
};

/// Every fourth shape under sanitizers, with which naive loops take minutes. Reads and writes of all shapes
/// are checked where the bits of every width are compared.
/// @tparam Layer  has Shape, kShapes and Results, a CpuRoom that its constructor fills from a CpuProblem
template <class Layer>
void expect_naive_loops() {
  const std::span shapes(Layer::kShapes);
  for (std::size_t i = effort(0, 4); i < shapes.size(); i += effort(1, 4)) {
    const auto& shape = shapes[i];
    const CpuProblem<typename Layer::Shape> p(shape);
    const NaiveSums<typename Layer::Shape> expected(p);
    for (const std::int64_t target : reference::fast_targets()) {
      SCOPED_TRACE(describe(shape) + " on " + hwy::TargetName(target));
      const reference::ForcedTarget forced(target);
      const typename Layer::Results results(p);
      EXPECT_EQ(reference::worst_difference(expected.y, results.y.values()), "") << "forward";
      EXPECT_EQ(reference::worst_difference(expected.dx, results.dx.values()), "") << "data gradient";
      EXPECT_EQ(reference::worst_difference(expected.dw, results.dw.values()), "") << "weight gradient";
      EXPECT_EQ(reference::worst_difference(expected.db, results.db.values()), "") << "bias gradient";
    }
  }
}

template <class Layer>
void expect_same_bits_for_every_width() {
  using Results = typename Layer::Results;
  const std::vector<std::int64_t> targets = reference::all_targets();
  if (targets.size() < 2) GTEST_SKIP() << "this machine has one such instruction set only";
  for (const auto& shape : Layer::kShapes) {
    SCOPED_TRACE(describe(shape));
    const CpuProblem<typename Layer::Shape> p(shape);
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

template <class Layer>
void expect_no_trace_of_earlier_calls(const typename Layer::Shape& one,
                                      const typename Layer::Shape& another) {
  using Results = typename Layer::Results;
  const CpuProblem<typename Layer::Shape> first(one), other(another);
  const Results before(first);
  const Results between(other);
  EXPECT_TRUE(same_bits(before, Results(first)));
  EXPECT_TRUE(same_bits(between, Results(other)));
}

/// Columns whose gradient is zero, whatever their numbers.
template <class Layer>
void expect_no_trace_of_padding() {
  constexpr int kMore = 32;
  for (const auto& shape : Layer::kShapes) {
    SCOPED_TRACE(describe(shape));
    auto wider = shape;
    wider.batch += kMore;
    const CpuProblem<typename Layer::Shape> p(shape);
    const CpuProblem<typename Layer::Shape> padded(wider, add_columns(p.x, shape.batch, kMore, 0.75),
                                                   add_columns(p.dy, shape.batch, kMore, 0.0));
    const typename Layer::Results expected(p), actual(padded);
    EXPECT_TRUE(same_bits(expected.dw, actual.dw));
    EXPECT_TRUE(same_bits(expected.db, actual.db));
    EXPECT_TRUE(same_columns(expected.y, shape.batch, actual.y, wider.batch));
    EXPECT_TRUE(same_columns(expected.dx, shape.batch, actual.dx, wider.batch));
  }
}

/// The naive loops themselves.
template <class Shape>
void expect_finite_differences(const Shape& shape) {
  SCOPED_TRACE(describe(shape));
  using Numbers = std::vector<double>;
  const LayerProblem<Shape> p(shape);
  const auto loss = [&](const Numbers& x, const Numbers& w, const Numbers& b) {
    return reference::weighted_sum(p.dy, reference::layer_forward(shape, x, w, b).value);
  };
  using reference::linear_differences, reference::largest_error;
  const Numbers dx = linear_differences(p.x, [&](const Numbers& x) { return loss(x, p.w, p.b); });
  const Numbers dw = linear_differences(p.w, [&](const Numbers& w) { return loss(p.x, w, p.b); });
  const Numbers db = linear_differences(p.b, [&](const Numbers& b) { return loss(p.x, p.w, b); });
  const NaiveSums<Shape> sums(p);
  EXPECT_LT(largest_error(sums.dx, dx), 1e-9);
  EXPECT_LT(largest_error(sums.dw, dw), 1e-9);
  EXPECT_LT(largest_error(sums.db, db), 1e-9);
}

}  // namespace lockstep::test
