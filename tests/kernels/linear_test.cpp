// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kernels of fully connected layers against the naive loops, on every instruction set, and bit for bit
/// against each other.
#include "kernels/cpu/linear.hpp"

#include "gtest/gtest.h"
#include "tests/kernels/layer_on_cpu.hpp"

#include <vector>

namespace lockstep::linear_test {
namespace {

struct FullyConnected {
  using Shape = LinearShape;

  /// batch, inputs, outputs
  static const std::vector<Shape> kShapes;

  struct Results : test::CpuRoom<Shape> {
    explicit Results(const test::CpuProblem<Shape>& p) : CpuRoom(p) {
      cpu::linear_forward(p.shape, p.x_tensor.data(), p.w_tensor.data(), p.b_tensor.data(), y.data());
      cpu::linear_backward_data(p.shape, p.dy_tensor.data(), p.w_tensor.data(), dx.data());
      cpu::linear_backward_weights(p.shape, p.x_tensor.data(), p.dy_tensor.data(), dw.data(), db.data());
    }
  };

  static reference::Sums forward(const Shape& shape, const std::vector<double>& x,
                                 const std::vector<double>& w, const std::vector<double>& b) {
    return reference::linear_forward(shape, x, w, b);
  }
  static test::ExpectedSums naive(const test::LayerProblem<Shape>& p) {
    return {forward(p.shape, p.x, p.w, p.b), reference::linear_backward_data(p.shape, p.dy, p.w),
            reference::linear_backward_weights(p.shape, p.x, p.dy),
            reference::linear_backward_bias(p.shape, p.dy)};
  }
};

const std::vector<LinearShape> FullyConnected::kShapes = {
    {64, 320, 50}, {64, 50, 10}, {16, 800, 128}, {32, 128, 10},  {112, 7, 5},  {48, 33, 17},
    {16, 1, 1},    {16, 1, 9},   {32, 9, 1},     {80, 15, 16},   {16, 16, 15}, {64, 17, 31},
    {16, 31, 6},   {48, 64, 64}, {32, 65, 11},   {96, 3, 100},   {16, 100, 3}, {112, 49, 7},
    {16, 784, 10}, {32, 47, 23}, {64, 2, 2},     {128, 130, 12}, {240, 5, 21},
};

TEST(LinearTest, AgreesWithNaiveLoopsOnEveryFastInstructionSet) {
  test::expect_naive_loops<FullyConnected>();
}

TEST(LinearTest, BitsAreTheSameForEverySimdWidth) {
  test::expect_same_bits_for_every_width<FullyConnected>();
}

TEST(LinearTest, EarlierCallsLeaveNoTraceInTheBits) {
  test::expect_no_trace_of_earlier_calls<FullyConnected>({48, 33, 17}, {64, 320, 50});
}

TEST(LinearTest, PaddingColumnsWithZeroGradientDoNotChangeTheBits) {
  test::expect_no_trace_of_padding<FullyConnected>();
}

TEST(LinearReferenceTest, GradientsAgreeWithFiniteDifferences) {
  test::expect_finite_differences<FullyConnected>({3, 5, 4});
}

}  // namespace
}  // namespace lockstep::linear_test
