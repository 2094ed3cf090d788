// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions on a device: the bits of the CPU in every order of threads, whatever the batch and the
/// grains. And fused ops against their parts. The CPU agrees with naive loops: tests/kernels/linear_test.cpp.
#include "common/error.hpp"
#include "tests/kernels/device/layer_rig.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::conv2d_test {
namespace {

// batch, C, H, W, K, R, S, stride, padding, groups, dilation
const Conv2dShape kShapes[] = {
    {5, 1, 28, 28, 10, 5, 5, 1, 0},
    {2, 1, 28, 28, 20, 3, 3, 1, 0},
    {3, 4, 7, 12, 6, 5, 5, 1, 0},
    {1, 6, 8, 13, 11, 5, 5, 1, 0},
    {1, 1, 5, 7, 1, 1, 1, 1, 0},
    {17, 3, 5, 7, 4, 3, 3, 1, 0},
    {100, 1, 9, 9, 2, 5, 5, 1, 0},
    {33, 7, 6, 6, 5, 5, 5, 1, 2},
    {37, 3, 8, 9, 13, 3, 3, 1, 1},
    {9, 2, 16, 15, 3, 3, 3, 1, 1},
    {7, 2, 17, 18, 4, 5, 5, 1, 0},
    {2, 20, 7, 6, 7, 3, 3, 1, 2},
    {2, 3, 5, 5, 2, 5, 5, 1, 4},
    {3, 2, 3, 4, 3, 5, 5, 1, 2},
    {17, 1, 3, 3, 1, 3, 3, 1, 0},
    {40, 7, 5, 5, 3, 5, 5, 1, 0},
    {31, 5, 6, 6, 7, 1, 1, 1, 0},
    {6, 4, 7, 9, 3, 7, 3, 1, 0},
    {16, 3, 7, 7, 5, 2, 2, 1, 0},
    {17, 2, 8, 8, 3, 4, 4, 2, 1},
    {100, 2, 5, 7, 3, 3, 3, 2, 1},
    {8, 3, 11, 10, 6, 3, 3, 2, 0},
    {7, 5, 10, 7, 2, 5, 3, 3, 2},
    {12, 6, 9, 9, 8, 2, 2, 3, 0},
    {4, 11, 3, 3, 20, 1, 1, 2, 0},
    // Groups, among them one for each channel. Taps that are apart, with strides that share a factor with that and not.
    {5, 6, 7, 6, 4, 3, 3, 1, 1, 2},
    {3, 12, 5, 6, 18, 1, 1, 1, 0, 3},
    {17, 5, 6, 7, 5, 3, 3, 1, 1, 5},
    {4, 6, 9, 8, 12, 3, 3, 2, 1, 6},
    {3, 14, 5, 4, 10, 2, 3, 1, 1, 2},
    {2, 3, 9, 10, 4, 3, 3, 1, 2, 1, 2},
    {3, 2, 11, 9, 3, 3, 2, 2, 1, 1, 2},
    {2, 2, 13, 12, 5, 3, 3, 3, 4, 1, 2},
    {2, 4, 14, 13, 6, 3, 3, 4, 5, 2, 6},
    {33, 1, 8, 9, 2, 2, 2, 1, 3, 1, 3},
    {3, 9, 6, 6, 17, 3, 3, 1, 1},
    {5, 3, 9, 14, 9, 3, 3, 1, 1},
    {2, 9, 5, 5, 12, 3, 3, 1, 2},
    {36, 5, 9, 9, 10, 5, 5, 1, 0},
    // More channels than groups, and filters that no kernel is written for.
    {5, 9, 6, 7, 11, 2, 3, 1, 1},
    {3, 13, 5, 5, 12, 1, 1, 1, 0},
    {4, 6, 7, 6, 9, 3, 3, 2, 1},
    {3, 31, 4, 5, 17, 3, 3, 1, 1},
    {2, 8, 5, 14, 6, 5, 5, 1, 2},
    {2, 7, 4, 15, 10, 3, 3, 1, 0},
    {3, 5, 9, 3, 21, 4, 1, 3, 0},
    {3, 26, 4, 5, 28, 3, 3, 1, 1, 2},
    {2, 40, 3, 3, 40, 3, 3, 1, 2, 4, 2},
    // Squares beside those that kernels are written for.
    {3, 2, 6, 7, 3, 4, 4, 1, 1},
    {2, 2, 8, 7, 4, 6, 6, 1, 1},
    {2, 3, 9, 8, 2, 6, 6, 1, 0},
    {1, 1, 11, 10, 2, 10, 10, 1, 0},
    // Several grains, of which the last is short.
    {145, 3, 7, 6, 4, 3, 3, 1, 1},
    {100, 3, 6, 7, 5, 2, 3, 2, 1},
};

// Large shapes; their weight gradients take the emulator long. The second convolutions of Net and LeNet, and four
// that have filters of some channels, or taps, at a time in shared memory: the last two, one direction each.
const Conv2dShape kLargeShapes[] = {
    {3, 10, 12, 12, 20, 5, 5, 1, 0}, {1, 20, 13, 13, 50, 5, 5, 1, 0}, {1, 200, 5, 6, 5, 5, 5, 1, 0},
    {1, 3, 7, 7, 200, 5, 5, 1, 0},   {1, 12, 6, 7, 10, 7, 7, 2, 3},   {1, 2, 8, 6, 32, 7, 3, 1, 1},
};

constexpr EpilogueStep kRelu = {}, kMax = {EpilogueKind::kMaxPool}, kAvg = {EpilogueKind::kAvgPool};
constexpr EpilogueStep kDropout2d = {EpilogueKind::kDropout, true, 4, 0.5F};
constexpr EpilogueStep kDropout = {EpilogueKind::kDropout, false, 9, 0.25F};

// steps, count, pool, seed, first sample
const Epilogue kEpilogues[] = {
    {{kRelu}, 1, 1, 11, 0},       {{kMax}, 1, 2, 11, 0},
    {{kAvg}, 1, 2, 11, 0},        {{kDropout2d, kMax, kRelu}, 3, 2, 11, 64},
    {{kRelu, kAvg}, 2, 2, 11, 0}, {{kRelu, kDropout}, 2, 1, 11, 64},
};

const Conv2dShape kEpilogueShapes[] = {
    {3, 10, 12, 12, 20, 5, 5, 1, 0}, {2, 5, 13, 13, 11, 5, 5, 1, 0},     {17, 3, 8, 7, 4, 3, 3, 1, 1},
    {33, 2, 5, 7, 3, 3, 3, 1, 0},    {9, 2, 9, 11, 5, 2, 2, 2, 0},       {2, 3, 6, 6, 2, 5, 5, 1, 0},
    {3, 1, 8, 12, 6, 3, 3, 1, 0},    {2, 1, 11, 13, 11, 5, 5, 1, 0},     {33, 1, 5, 7, 3, 3, 3, 1, 1},
    {3, 6, 7, 8, 6, 3, 3, 1, 1, 6},  {2, 4, 8, 9, 10, 3, 3, 1, 2, 2, 2},
};

std::vector<Conv2dShape> all_shapes() {
  std::vector<Conv2dShape> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.insert(shapes.end(), std::begin(kLargeShapes), std::end(kLargeShapes));
  return shapes;
}

using Conv2dTest = LayerTest;
using Problem = LayerProblem<Conv2dShape>;
using Layer = OnDevice<Conv2dShape>;
using LayerOfCpu = LayerOnCpu<Conv2dShape>;

TEST_F(Conv2dTest, ForwardAndDataGradientHaveTheBitsOfTheCpuInEveryOrderOfThreads) {
  for (const Conv2dShape& shape : all_shapes()) {
    SCOPED_TRACE(describe(shape));
    const Problem numbers(shape);
    const Layer p(rig_, numbers);
    const LayerOfCpu on_cpu(numbers);
    expect_bits_of_cpu(on_cpu.forward(), same_in_every_order([&] { return forward(p); }), shape.batch, "y");
    expect_bits_of_cpu(on_cpu.backward_data(), same_in_every_order([&] { return backward_data(p); }),
                       shape.batch, "dx");
    // With a bias, which is the first weights, it is the forward pass of a transposed convolution.
    const auto dx = rig_.poisoned<float>(shape.in_size());
    rig_.ops().conv2d_backward_data(rig_.stream(), shape, p.dy(), p.w(), p.w(), nullptr, dx.data());
    expect_bits_of_cpu(on_cpu.backward_data(on_cpu.w()), rig_.download(dx), shape.batch, "dx with a bias");
  }
}

/// Large ones take the emulator long, and are tried in one order.
TEST_F(Conv2dTest, WeightGradientsHaveTheBitsOfTheCpuInEveryOrderOfThreads) {
  constexpr int kGrains[] = {64, 37, 16, 100};
  int i = 0;
  for (const Conv2dShape& shape : all_shapes()) {
    const int grain = kGrains[i % 4];
    const bool is_large = i++ >= static_cast<int>(std::size(kShapes));
    SCOPED_TRACE(describe(shape) + ", grain " + std::to_string(grain));
    const Problem p(shape);
    const Layer on_device(rig_, p);
    const auto run = [&] { return backward_weights(on_device, grain); };
    EXPECT_EQ(is_large ? run() : same_in_every_order(run), LayerOfCpu(p).backward_weights(grain));
  }
}

/// Grains of more groups of 32 samples than there are units, and rows that no unit shares evenly. And padding, where a
/// kernel that has none would fit.
TEST_F(Conv2dTest, WeightGradientsOfWholeBatchesHaveTheBitsOfTheCpu) {
  for (const Conv2dShape& shape : {Conv2dShape{4200, 1, 2, 3, 1, 2, 2, 1, 0},
                                   {300, 2, 9, 5, 3, 3, 3, 1, 1},
                                   {8, 3, 4, 4, 9, 5, 5, 1, 1},
                                   {8, 3, 3, 4, 9, 5, 5, 1, 3}}) {
    SCOPED_TRACE(describe(shape));
    const Problem p(shape);
    EXPECT_EQ(backward_weights(Layer(rig_, p), shape.batch), LayerOfCpu(p).backward_weights(shape.batch));
  }
}

TEST_F(Conv2dTest, FusedEpilogueEqualsTheTwoOpsBitForBit) {
  for (const Conv2dShape& shape : kEpilogueShapes) expect_fused_epilogues(shape, kEpilogues);
}

TEST_F(Conv2dTest, FusedExpansionEqualsTheTwoOpsBitForBit) {
  for (const Conv2dShape& s : kEpilogueShapes) {
    const Layer p(rig_, Problem(s));
    expect_fused_expansion(p, {s.in_channels, s.in_height, s.in_width, 1, {1.5F}});
    for (const int dropped : {0, 1})  // a row and a column that no window covers
      expect_fused_expansion(p,
                             {s.in_channels, 2 * s.in_height + dropped, 2 * s.in_width + dropped, 2, {1.5F}});
  }
}

struct PooledCase {
  Conv2dShape shape;
  bool data_left_out = true;  ///< the data gradient, too, reads nothing where the pool has no window
};

// Filters of each kind, with padding and without. Outputs of which a pool drops a row, a column, both, or none.
const PooledCase kPooledCases[] = {
    {{5, 2, 13, 13, 8, 5, 5, 1, 0}},      {{33, 3, 7, 9, 5, 3, 3, 1, 0}},
    {{3, 2, 8, 9, 6, 5, 5, 1, 2}},        {{2, 4, 9, 8, 16, 3, 3, 1, 1}},
    {{4, 2, 6, 8, 3, 5, 5, 1, 0}},        {{2, 3, 4, 17, 4, 3, 3, 1, 0}, false},
    {{4, 2, 7, 6, 3, 2, 2, 2, 0}, false}, {{8, 3, 9, 11, 12, 5, 5, 1, 0}},
};

/// With `beyond` wherever a pool of windows of two has none.
Problem with_dropped(Problem p, double beyond) {
  const int rows = p.shape.out_height(), columns = p.shape.out_width(), batch = p.shape.batch;
  for (std::size_t i = 0; i < p.dy.size(); ++i) {
    const int pixel = static_cast<int>(i) / batch, row = pixel / columns % rows, column = pixel % columns;
    if (row >= rows / 2 * 2 || column >= columns / 2 * 2) p.dy[i] = beyond;
  }
  return p;
}

/// A gradient that the pool behind made is 0 there, and its kernels do not ask.
TEST_F(Conv2dTest, GradientsLeaveOutWhatAPoolDropped) {
  constexpr double kUnread = std::numeric_limits<double>::quiet_NaN();
  for (const PooledCase& c : kPooledCases) {
    SCOPED_TRACE(describe(c.shape));
    const Problem zeros = with_dropped(Problem(c.shape), 0);
    Problem data = with_dropped(zeros, c.data_left_out ? kUnread : 0);
    Problem weights = with_dropped(zeros, kUnread);
    data.shape.read = weights.shape.read = {c.shape.out_height() / 2 * 2, c.shape.out_width() / 2 * 2};
    const Layer all(rig_, zeros), data_on_device(rig_, data), weights_on_device(rig_, weights);
    const auto mask = rig_.upload(std::vector<std::uint8_t>(c.shape.in_size(), 15));  // a pool's before it
    const EpilogueBackward expand = {
        c.shape.in_channels, 2 * c.shape.in_height, 2 * c.shape.in_width, 2, {1.5F}, mask.data()};
    EXPECT_TRUE(same_bits(backward_data(data_on_device), backward_data(all)));
    EXPECT_TRUE(same_bits(backward_data(data_on_device, &expand), backward_data(all, &expand)));
    EXPECT_EQ(same_in_every_order([&] { return backward_weights(weights_on_device, 32); }),
              backward_weights(all, 32));
  }
}

TEST_F(Conv2dTest, AGrainAddsAtMostSixteenTermsToASum) {
  for (const Conv2dShape& shape : {Conv2dShape{64, 1, 28, 28, 2, 5, 5, 1, 0},
                                   {64, 1, 20, 20, 3, 2, 2, 1, 0},
                                   {300, 2, 40, 4, 2, 3, 3, 1, 1}}) {
    SCOPED_TRACE(describe(shape));
    Problem p(shape);
    std::fill(p.x.begin(), p.x.end(), 1.0);
    std::fill(p.dy.begin(), p.dy.end(), 1.0);
    const auto sums = backward_weights(Layer(rig_, p), shape.batch, 1e-30F);
    const auto elements = static_cast<std::int64_t>(sums.size() - 1);
    EXPECT_GE(sums.back(), elements);
    EXPECT_LE(sums.back(), elements * kPartialSums);
    EXPECT_TRUE(std::all_of(sums.begin(), sums.end() - 1, [](std::int64_t sum) { return sum == 0; }));
  }
}

TEST_F(Conv2dTest, NanIsRefusedOnceForEachWeightItReaches) {
  for (const Conv2dShape& shape : {Conv2dShape{50, 2, 9, 9, 3, 5, 5, 1, 0},
                                   {50, 2, 9, 9, 3, 5, 5, 1, 2},
                                   {50, 2, 9, 9, 3, 4, 4, 1, 0}}) {
    SCOPED_TRACE(describe(shape));
    Problem p(shape);
    std::fill(p.x.begin(), p.x.end(), 0.0);
    std::fill(p.dy.begin(), p.dy.end(), 1.0);
    const std::size_t centre = static_cast<std::size_t>(4 * shape.in_width + 4) * 50;
    p.x[centre + 49] = std::numeric_limits<double>::quiet_NaN();  // channel 0, reached by all of its taps
    const auto sums = backward_weights(Layer(rig_, p), 64);
    EXPECT_EQ(sums.back(), shape.out_channels * shape.kernel_height * shape.kernel_width);
    const double pixels = shape.out_height() * shape.out_width() * shape.batch;
    for (std::size_t k = 0; k < p.b.size(); ++k) EXPECT_EQ(from_exact(sums[p.w.size() + k]), pixels);
  }
}

TEST_F(Conv2dTest, AWayBackOfAnotherShapeThanTheInputsIsABug) {
  const Conv2dShape shape{8, 2, 4, 4, 3, 3, 3, 1, 1};
  const auto numbers = rig_.zeroed<float>(shape.in_size());
  const auto expect_refused = [&](const EpilogueBackward& expand, const float* bias) {
    const auto queue = [&] {
      rig_.ops().conv2d_backward_data(rig_.stream(), shape, numbers.data(), numbers.data(), bias, &expand,
                                      numbers.data());
    };
    expect_error<InternalError>(queue, {"b == nullptr && expand->channels == s.in_channels"});
  };
  expect_refused({3, 8, 8, 2, {}}, nullptr);
  expect_refused({2, 6, 8, 2, {}}, nullptr);
  expect_refused({2, 8, 6, 2, {}}, nullptr);
  expect_refused({2, 8, 8, 2, {}}, numbers.data());
}

}  // namespace
}  // namespace lockstep::test::conv2d_test
