// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kernels of fully connected layers against the naive loops, on every instruction set, and bit for bit
/// against each other.
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/layer_on_cpu.hpp"
#include "tests/kernels/layer_problem.hpp"
#include "tests/support/prelude.hpp"

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
};

const std::vector<LinearShape> FullyConnected::kShapes = {
    {64, 320, 50},  {64, 50, 10}, {16, 800, 128}, {32, 128, 10}, {112, 7, 5},    {48, 33, 17}, {16, 1, 1},
    {16, 1, 9},     {32, 9, 1},   {80, 15, 16},   {16, 16, 15},  {64, 17, 31},   {16, 31, 6},  {48, 64, 64},
    {32, 65, 11},   {96, 3, 100}, {16, 100, 3},   {112, 49, 7},  {16, 784, 10},  {32, 47, 23}, {64, 2, 2},
    {128, 130, 12}, {240, 5, 21}, {16, 1930, 9},  {16, 4100, 2}, {144, 11, 300},
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
  test::expect_finite_differences(LinearShape{3, 5, 4});
}

}  // namespace

}  // namespace lockstep::linear_test

namespace lockstep::conv2d_test {

// Convolution kernels against the naive loops, on every instruction set, and bit for bit against each other.

namespace {

struct Convolution {
  using Shape = Conv2dShape;

  /// batch, C, H, W, K, R, S, stride, padding, groups, dilation
  static const std::vector<Shape> kShapes;

  struct Results : test::CpuRoom<Shape> {
    explicit Results(const test::CpuProblem<Shape>& p) : CpuRoom(p) {
      cpu::conv2d_forward(p.shape, p.x_tensor.data(), p.w_tensor.data(), p.b_tensor.data(), y.data());
      cpu::conv2d_backward_data(p.shape, p.dy_tensor.data(), p.w_tensor.data(), nullptr, dx.data());
      const auto run = [&](const GradientOutput& to) {
        cpu::conv2d_backward_weights(p.shape, GradientSplit(p.shape, kGrain), p.x_tensor.data(),
                                     p.dy_tensor.data(), to);
      };
      test::sum_terms(p.shape, kGrain, run, dw.data(), db.data());
    }
    static constexpr int kGrain = 200;  // larger than any batch of these tests
  };
};

const std::vector<Conv2dShape> Convolution::kShapes = {
    // Strides that copy what they read: rows of an image larger than a cache, and pixels under filters of 1x1.
    {16, 8, 29, 31, 128, 3, 3, 2, 1},
    {16, 128, 17, 17, 128, 3, 3, 2, 1},  // a row in two pieces
    {48, 33, 9, 8, 37, 1, 1, 2, 0},
    {16, 68, 10, 9, 70, 1, 1, 3, 0, 2},
    {64, 1, 28, 28, 10, 5, 5, 1, 0},
    {64, 10, 12, 12, 20, 5, 5, 1, 0},
    {16, 1, 28, 28, 20, 3, 3, 1, 0},
    {16, 20, 13, 13, 50, 5, 5, 1, 0},
    {32, 3, 5, 7, 4, 3, 3, 1, 0},
    {112, 2, 5, 7, 3, 3, 2, 1, 0},
    {48, 5, 6, 6, 7, 1, 1, 1, 0},
    {16, 4, 5, 7, 11, 5, 7, 1, 0},
    {32, 3, 8, 9, 13, 3, 3, 1, 1},
    {16, 7, 9, 8, 5, 5, 5, 1, 2},
    {80, 2, 11, 10, 6, 3, 3, 2, 0},
    {16, 3, 12, 13, 9, 3, 3, 2, 1},
    {32, 5, 10, 7, 2, 5, 3, 3, 2},
    {16, 6, 9, 9, 8, 2, 2, 3, 0},
    {64, 13, 4, 4, 17, 3, 3, 1, 1},
    {16, 1, 1, 1, 1, 1, 1, 1, 0},
    {32, 1, 7, 5, 1, 7, 5, 1, 0},
    {16, 11, 3, 3, 23, 1, 1, 2, 0},
    {48, 2, 6, 5, 21, 4, 1, 1, 0},
    {16, 9, 5, 6, 31, 1, 4, 1, 1},
    {112, 4, 7, 7, 12, 3, 3, 3, 1},
    {16, 2, 3, 4, 3, 5, 5, 1, 2},
    // A weight gradient that copies channels of x more than once.
    {64, 12, 7, 7, 72, 3, 3, 1, 1, 1, 2},
    // Filters at the edges of images that are hardly larger than they are, or not at all.
    {64, 16, 7, 7, 72, 3, 3, 1, 1},
    {16, 17, 2, 2, 7, 3, 3, 1, 1},
    {32, 16, 4, 1, 6, 3, 3, 1, 1},
    {48, 18, 4, 6, 5, 3, 3, 2, 1},
    {16, 16, 6, 9, 11, 3, 3, 1, 1},
    {32, 8, 6, 6, 16, 1, 1, 1, 1},
    // Groups, among them one for each channel. Taps that are apart, with strides that share a factor with that and not.
    {32, 12, 7, 9, 8, 3, 3, 1, 1, 4},
    {16, 22, 5, 6, 26, 1, 1, 1, 0, 2},
    {64, 5, 9, 11, 5, 3, 3, 1, 1, 5},
    {16, 6, 13, 12, 6, 3, 3, 2, 1, 6},
    {48, 3, 9, 8, 6, 5, 3, 2, 2, 3},
    {32, 4, 12, 9, 7, 3, 3, 1, 2, 1, 2},
    {16, 3, 13, 12, 5, 3, 2, 2, 1, 1, 2},
    {16, 2, 14, 15, 4, 3, 3, 3, 4, 1, 2},
    {32, 4, 15, 16, 6, 3, 3, 4, 5, 2, 6},
    {16, 1, 8, 9, 2, 2, 2, 1, 3, 1, 3},
};

TEST(Conv2dTest, AgreesWithNaiveLoopsOnEveryFastInstructionSet) {
  test::expect_naive_loops<Convolution>();
}

TEST(Conv2dTest, BitsAreTheSameForEverySimdWidth) {
  test::expect_same_bits_for_every_width<Convolution>();
}

/// Units that are read in parts. So many rows at a time as fit the cache, which is another number for each
/// instruction set.
TEST(Conv2dTest, RowsThatDoNotFitTheCacheMakeNoDifference) {
  constexpr Conv2dShape kUnits[] = {{32, 64, 14, 30, 80, 1, 2, 1, 0}, {48, 70, 30, 29, 72, 1, 1, 1, 0}};
  for (const Conv2dShape& s : kUnits) {
    SCOPED_TRACE(test::describe(s));
    const test::PoisonedTensor x(reference::random_numbers(test::kProblemSeed, 1, s.in_size())),
        dy(reference::random_numbers(test::kProblemSeed, 4, s.out_size()));
    const std::size_t size = s.weight_size() + static_cast<std::size_t>(s.out_channels);
    reference::expect_same_bits(reference::fast_targets(), [&] {
      std::vector<float> terms(static_cast<std::size_t>(GradientSplit(s, s.batch).terms) * size, NAN);
      cpu::conv2d_backward_weights(s, GradientSplit(s, s.batch), x.data(), dy.data(),
                                   {terms.data(), terms.data() + s.weight_size(), size});
      return terms;
    });
  }
}

/// Calls use(index, whether the number is of a part of an output).
template <class Use>
void for_each_output(const Conv2dShape& s, const ImagePart& part, const Use& use) {
  const auto batch = static_cast<std::size_t>(s.batch), width = static_cast<std::size_t>(s.out_width());
  for (std::size_t i = 0; i < s.out_size(); ++i) {
    const int row = static_cast<int>(i / batch / width) % s.out_height(),
              column = static_cast<int>(i / batch % width);
    use(i, row < part.height && column < part.width);
  }
}

/// Marks unread outputs: gradients that would read there get NaN; without it they are those of zeros there.
TEST(Conv2dTest, WhatIsNotReadOfTheOutputIsLeftOut) {
  for (const Conv2dShape& shape : Convolution::kShapes) {
    const int rows = shape.out_height(), columns = shape.out_width();
    for (const ImagePart& read : {ImagePart{(rows + 1) / 2, columns},
                                  {rows, (columns + 2) / 3},
                                  {std::max(1, rows - 1), std::max(1, columns - 1)}}) {
      test::CpuProblem<Conv2dShape> whole(shape), part(shape);
      part.shape.read = read;
      for_each_output(shape, read, [&](std::size_t i, bool is_read) {
        if (!is_read) whole.dy_tensor.data()[i] = 0, part.dy_tensor.data()[i] = NAN;
      });
      for (const std::int64_t target : reference::fast_targets()) {
        SCOPED_TRACE(test::describe(shape) + ", read " + std::to_string(read.height) + " x " +
                     std::to_string(read.width) + " on " + hwy::TargetName(target));
        const reference::ForcedTarget forced(target);
        Convolution::Results expected(whole), results(part);
        const std::size_t channel = std::size_t{1} * rows * columns * shape.batch;
        for_each_output(shape, read, [&](std::size_t i, bool is_read) {
          if (!is_read) expected.y.data()[i] = part.b_tensor.data()[i / channel];
        });
        EXPECT_TRUE(same_bits(expected, results));
      }
    }
  }
}

TEST(Conv2dTest, EarlierCallsLeaveNoTraceInTheBits) {
  test::expect_no_trace_of_earlier_calls<Convolution>({32, 3, 8, 9, 13, 3, 3, 1, 1},
                                                      {64, 10, 12, 12, 20, 5, 5, 1, 0});
}

TEST(Conv2dTest, PaddingColumnsWithZeroGradientDoNotChangeTheBits) {
  test::expect_no_trace_of_padding<Convolution>();
}

TEST(Conv2dReferenceTest, GradientsAgreeWithFiniteDifferences) {
  for (const Conv2dShape& shape : std::vector<Conv2dShape>{{2, 2, 4, 3, 3, 3, 2, 1, 0},
                                                           {1, 3, 5, 4, 2, 3, 3, 2, 1},
                                                           {2, 1, 4, 4, 2, 2, 3, 3, 1},
                                                           {1, 4, 5, 4, 6, 3, 2, 1, 1, 2},
                                                           {1, 2, 7, 6, 2, 3, 3, 2, 2, 1, 2}})
    test::expect_finite_differences(shape);
}

}  // namespace

}  // namespace lockstep::conv2d_test
