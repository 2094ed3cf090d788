// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fully connected layers on a device. The bits of the CPU in every order of threads, whatever the batch and
/// the grains. The CPU agrees with naive loops: tests/kernels/linear_test.cpp.
#include "common/error.hpp"
#include "tests/kernels/device/layer_rig.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::linear_test {
namespace {

// batch, inputs, outputs
const LinearShape kShapes[] = {
    {1, 1, 1},    {17, 1, 10},  {100, 1, 1},   {1, 7, 50},   {17, 7, 1},    {100, 7, 128},
    {1, 35, 10},  {17, 35, 50}, {100, 35, 10}, {1, 320, 50}, {64, 320, 50}, {17, 320, 1},
    {1, 800, 10}, {17, 800, 5}, {33, 128, 10}, {64, 50, 10}, {3, 9, 128},   {31, 65, 17},
    {65, 12, 33}, {37, 19, 3},  {130, 3, 100}, {2, 1030, 2}, {96, 2, 2},    {5, 8, 131},
};

/// Too slow for ten thread orders. The last ones have sums that are cut: more than 16 slices of 120 inputs, more than
/// 128 outputs or samples.
const LinearShape kLargeShapes[] = {{100, 320, 50}, {100, 800, 128}, {256, 50, 10}, {17, 1930, 9},
                                    {3, 4100, 2},   {130, 11, 300},  {300, 7, 129}, {5, 1920, 128}};

using LinearTest = LayerTest;
using Problem = LayerProblem<LinearShape>;
using Sums = std::vector<std::int64_t>;

TEST_F(LinearTest, HasTheBitsOfTheCpuInEveryOrderOfThreads) {
  std::vector<LinearShape> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.insert(shapes.end(), std::begin(kLargeShapes), std::end(kLargeShapes));
  for (const LinearShape& shape : shapes) {
    SCOPED_TRACE(describe(shape));
    const Problem numbers(shape);
    const OnDevice<LinearShape> p(rig_, numbers);
    const LayerOnCpu<LinearShape> on_cpu(numbers);
    const bool is_large = &shape - shapes.data() >= static_cast<std::ptrdiff_t>(std::size(kShapes));
    const auto in_orders = [&](const auto& run) { return is_large ? run() : same_in_every_order(run); };
    expect_bits_of_cpu(on_cpu.forward(), in_orders([&] { return forward(p); }), shape.batch, "y");
    expect_bits_of_cpu(on_cpu.backward_data(), in_orders([&] { return backward_data(p); }), shape.batch,
                       "dx");
    for (const int grain : {64, 37, 260})
      EXPECT_EQ(in_orders([&] { return backward_weights(p, grain); }), on_cpu.backward_weights(grain))
          << "grain " << grain;
  }
}

TEST_F(LinearTest, NumbersBeyondTheLimitAreRefusedAndTheOthersCount) {
  Problem p({100, 7, 5});
  const auto run = [&](const Problem& some) {
    return backward_weights(OnDevice<LinearShape>(rig_, some), 64, exact_limit(64));
  };
  const Sums expected = run(p);
  p.dy[3 * 100 + 70] = NAN;  // output 3, in the second grain
  p.dy[1 * 100 + 5] = 1000 * static_cast<double>(exact_limit(64));
  const Sums sums = run(p);
  EXPECT_EQ(sums.back(), 2 * (7 + 1)) << "seven weights and a bias of two outputs";
  for (const std::size_t output : {0, 2, 4}) {
    for (std::size_t input = 0; input < 7; ++input)
      EXPECT_EQ(sums[output * 7 + input], expected[output * 7 + input]);
    EXPECT_EQ(sums[35 + output], expected[35 + output]);
  }
  const Sums first_grain = run(p.columns(0, 64));
  for (std::size_t i = 3 * 7; i < 4 * 7; ++i) EXPECT_EQ(sums[i], first_grain[i]) << "weight " << i;
}

TEST_F(LinearTest, TheLimitItselfIsRefused) {
  constexpr float kLimit = 4096;
  Problem p({1, 1, 1});
  p.x[0] = -1;
  const auto run = [&](float dy, const Sums& before) {
    p.dy[0] = static_cast<double>(dy);
    return backward_weights(OnDevice<LinearShape>(rig_, p), 64, kLimit, before);
  };
  EXPECT_EQ(run(kLimit, {}), (Sums{0, 0, 2}));
  const float below = std::nextafter(kLimit, 0.0F);
  const auto term = static_cast<std::int64_t>(static_cast<double>(below) * kExactScale);
  EXPECT_EQ(run(below, {1, 2, 3}), (Sums{1 - term, 2 + term, 3})) << "adds to what is there";
}

// With an epilogue of their own.

constexpr EpilogueStep kRelu = {};
constexpr EpilogueStep kDropout = {EpilogueKind::kDropout, false, 9, 0.5F};
constexpr EpilogueStep kDropout2d = {EpilogueKind::kDropout, true, 4, 0.25F};

const Epilogue kEpilogues[] = {
    {{}, 0, 1, 11, 64},
    {{kRelu}, 1, 1, 11, 64},
    {{kRelu, kDropout}, 2, 1, 11, 128},
    {{kDropout}, 1, 1, 0xFEDCBA9876543210ULL, 64},
    {{kDropout2d, kRelu, kDropout}, 3, 1, 11, 0xFFFFFFF0U},
};

TEST_F(LinearTest, FusedEpilogueEqualsTheTwoOpsBitForBit) {
  for (const LinearShape shape : {LinearShape{17, 35, 50}, {100, 7, 5}, {64, 320, 10}, {1, 800, 7}})
    expect_fused_epilogues(shape, kEpilogues);
}

TEST_F(LinearTest, MaskAndStateMayBeMissing) {
  const OnDevice<LinearShape> p(rig_, Problem({17, 35, 50}));
  std::vector<float> y = forward(p);
  for (float& number : y) number = std::max(number, 0.0F);
  EXPECT_EQ(forward(p, {{kRelu}, 1}), y);
}

struct ExpansionCase {
  int channels, height, width, pool, batch, outputs;
};
const ExpansionCase kExpansions[] = {
    {35, 1, 1, 1, 17, 10}, {3, 5, 7, 1, 33, 4},    {5, 5, 7, 2, 17, 50}, {20, 8, 8, 2, 64, 7},
    {7, 3, 2, 2, 100, 11}, {50, 9, 9, 2, 1, 128},  {1, 2, 2, 2, 5, 1},   {320, 1, 1, 1, 64, 50},
    {11, 7, 4, 2, 70, 65}, {4, 13, 15, 2, 40, 10},
};

TEST_F(LinearTest, FusedExpansionEqualsTheTwoOpsBitForBit) {
  for (const ExpansionCase& c : kExpansions) {
    const EpilogueBackward expand{c.channels, c.height, c.width, c.pool, {1.75F}};
    const int features = c.channels * expand.pooled_height() * expand.pooled_width();
    expect_fused_expansion(OnDevice<LinearShape>(rig_, Problem({c.batch, features, c.outputs})), expand);
  }
}

TEST_F(LinearTest, StepsAroundItThatAreNotOfItsShapeAreABug) {
  const LinearShape shape{2, 6, 4};
  const auto numbers = rig_.zeroed<float>(24);
  const Epilogue pooled{{}, 0, 2};
  expect_error<InternalError>(
      [&] {
        rig_.ops().linear_forward(rig_.stream(), shape, numbers.data(), numbers.data(), nullptr, pooled,
                                  nullptr, numbers.data(), nullptr);
      },
      {"epilogue.pool == 1"});
  const EpilogueBackward other{5, 1, 1, 1, {}};
  expect_error<InternalError>(
      [&] {
        rig_.ops().linear_backward_data(rig_.stream(), shape, numbers.data(), numbers.data(), &other,
                                        numbers.data());
      },
      {"== shape.in_features"});
}

}  // namespace
}  // namespace lockstep::test::linear_test
