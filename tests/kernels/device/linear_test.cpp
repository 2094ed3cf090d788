// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fully connected layers on a device. The bits of the CPU in every order of threads, whatever the batch and
/// the grains. The CPU agrees with naive loops: tests/kernels/linear_test.cpp.
#include "kernels/numerics/sums.hpp"
#include "tests/kernels/device/cpu_columns.hpp"
#include "tests/kernels/device/problems.hpp"
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

// --- against the CPU, bit for bit

void expect_forward_of_cpu(const Problem& p, const std::vector<float>& y) {
  LinearShape shape = p.shape;
  shape.batch = padded_columns(shape.batch);
  const auto x = to_cpu(p.x, p.shape.batch);
  auto expected = cpu_room(p.dy.size(), p.shape.batch);
  const std::vector<float> weights(p.w.begin(), p.w.end()), biases(p.b.begin(), p.b.end());
  cpu::linear_forward(shape, x.data(), weights.data(), biases.data(), expected.data());
  expect_bits_of_cpu(expected, y, p.shape.batch, "y");
}

void expect_data_gradient_of_cpu(const Problem& p, const std::vector<float>& dx) {
  LinearShape shape = p.shape;
  shape.batch = padded_columns(shape.batch);
  const auto dy = to_cpu(p.dy, p.shape.batch);
  auto expected = cpu_room(p.x.size(), p.shape.batch);
  const std::vector<float> weights(p.w.begin(), p.w.end());
  cpu::linear_backward_data(shape, dy.data(), weights.data(), expected.data());
  expect_bits_of_cpu(expected, dx, p.shape.batch, "dx");
}

/// The CPU's sums over all grains.
ExactSums weight_gradients_of_cpu(const Problem& p, int grain) {
  ExactSums sums(p.w.size() + p.b.size() + 1);
  std::vector<float> gradient(p.w.size() + p.b.size(), kNan);
  for (int first = 0; first < p.shape.batch; first += grain) {
    const Problem part = p.columns(first, std::min(grain, p.shape.batch - first));
    LinearShape shape = part.shape;
    shape.batch = padded_columns(shape.batch);
    const auto x = to_cpu(part.x, part.shape.batch), dy = to_cpu(part.dy, part.shape.batch);
    cpu::linear_backward_weights(shape, x.data(), dy.data(), gradient.data(), gradient.data() + p.w.size());
    cpu::accumulate_exact(gradient.size(), gradient.data(), exact_format(64), sums.data());
  }
  return sums;
}

TEST_F(LinearTest, HasTheBitsOfTheCpuInEveryOrderOfThreads) {
  for (const LinearShape& shape : kShapes) {
    SCOPED_TRACE(describe(shape));
    const Problem p(shape);
    expect_forward_of_cpu(p, same_in_every_order([&] { return forward(p).y; }));
    expect_data_gradient_of_cpu(p, same_in_every_order([&] { return backward_data(p); }));
    for (const int grain : {64, 37, 260})
      EXPECT_EQ(same_in_every_order([&] { return backward_weights(p, grain); }),
                weight_gradients_of_cpu(p, grain))
          << "grain " << grain;
  }
}

TEST_F(LinearTest, LargeLayersHaveTheBitsOfTheCpu) {
  for (const LinearShape& shape : kLargeShapes) {
    SCOPED_TRACE(describe(shape));
    const Problem p(shape);
    expect_forward_of_cpu(p, forward(p).y);
    expect_data_gradient_of_cpu(p, backward_data(p));
    for (const int grain : {64, 37, 260})
      EXPECT_EQ(backward_weights(p, grain), weight_gradients_of_cpu(p, grain)) << "grain " << grain;
  }
}

TEST_F(LinearTest, NumbersBeyondTheLimitAreRefusedAndTheOthersCount) {
  Problem p({100, 7, 5});
  const ExactSums expected = backward_weights(p, 64);
  p.dy[3 * 100 + 70] = kNan;  // output 3, in the second grain
  p.dy[1 * 100 + 5] = 1000 * exact_limit(64);
  const ExactSums sums = backward_weights(p, 64);
  EXPECT_EQ(sums.back(), 2 * (7 + 1)) << "seven weights and a bias of two outputs";
  for (const std::size_t output : {0, 2, 4}) {
    for (std::size_t input = 0; input < 7; ++input)
      EXPECT_EQ(sums[output * 7 + input], expected[output * 7 + input]);
    EXPECT_EQ(sums[35 + output], expected[35 + output]);
  }
  const ExactSums first_grain = backward_weights(p.columns(0, 64), 64);
  for (std::size_t i = 3 * 7; i < 4 * 7; ++i) EXPECT_EQ(sums[i], first_grain[i]) << "weight " << i;
}

TEST_F(LinearTest, TheLimitItselfIsRefused) {
  Problem p({1, 1, 1});
  p.x[0] = -1;
  p.dy[0] = exact_limit(64);
  EXPECT_EQ(backward_weights(p, 64), (ExactSums{0, 0, 2}));
  p.dy[0] = std::nextafter(exact_limit(64), 0.0F);
  const auto term = static_cast<std::int64_t>(p.dy[0] * kExactScale);
  EXPECT_EQ(backward_weights(p, 64, {1, 2, 3}), (ExactSums{1 - term, 2 + term, 3}))
      << "adds to what is there";
}

// Fully connected layers on a device with an epilogue of their own. The bits of the two ops one after the other.

using FusedLinearTest = LinearTest;

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

TEST_F(FusedLinearTest, FusedEpilogueEqualsTheEpilogueAlone) {
  for (const LinearShape shape : {LinearShape{17, 35, 50}, {100, 7, 5}, {64, 320, 10}, {1, 800, 7}}) {
    const Problem p(shape);
    const std::vector<float> sums = forward(p).y;
    for (std::size_t e = 0; e < std::size(kEpilogues); ++e) {
      SCOPED_TRACE(describe(shape) + ", epilogue " + std::to_string(e));
      const Activation fused = forward(p, kEpilogues[e]), parts = epilogue_alone(p, sums, kEpilogues[e]);
      EXPECT_EQ(fused.y, parts.y);
      EXPECT_EQ(fused.mask, parts.mask);
    }
  }
}

TEST_F(FusedLinearTest, MaskAndStateMayBeMissing) {
  const Problem p({17, 35, 50});
  const Epilogue relu = {{kRelu}, 1};
  const auto x = rig_.upload(p.x), weights = arena(p);
  const auto y = rig_.poisoned<float>(p.dy.size());
  const float* w = weights.data() + 1;
  rig_.ops().linear_forward(rig_.stream(), p.shape, x.data(), w, w + p.w.size(), relu, nullptr, y.data(),
                            nullptr);
  EXPECT_EQ(rig_.download(y), forward(p, relu).y);
}

struct ExpansionCase {
  int channels, height, width, pool, batch, outputs;
};
const ExpansionCase kExpansions[] = {
    {35, 1, 1, 1, 17, 10}, {3, 5, 7, 1, 33, 4},    {5, 5, 7, 2, 17, 50}, {20, 8, 8, 2, 64, 7},
    {7, 3, 2, 2, 100, 11}, {50, 9, 9, 2, 1, 128},  {1, 2, 2, 2, 5, 1},   {320, 1, 1, 1, 64, 50},
    {11, 7, 4, 2, 70, 65}, {4, 13, 15, 2, 40, 10},
};

TEST_F(FusedLinearTest, FusedExpansionEqualsTheExpansionAlone) {
  for (const ExpansionCase& c : kExpansions) {
    EpilogueBackward expand{c.channels, c.height, c.width, c.pool, 1.75F};
    const int features = c.channels * expand.pooled_height() * expand.pooled_width();
    const LinearShape shape = {c.batch, features, c.outputs};
    SCOPED_TRACE(describe(shape) + ", expanded to " + std::to_string(c.height) + " x " +
                 std::to_string(c.width));
    const Problem p(shape);
    std::mt19937 engine(7);
    std::vector<std::uint8_t> bits(p.x.size());
    for (std::uint8_t& mask : bits) mask = static_cast<std::uint8_t>(engine() % (1U << c.pool * c.pool));
    const auto mask = rig_.upload(bits);
    expand.mask = mask.data();
    const auto dx_size = static_cast<std::size_t>(c.channels * c.height * c.width * c.batch);
    const auto fused = same_in_every_order([&] { return backward_data(p, &expand, dx_size); });
    EXPECT_EQ(fused, expand_alone(expand, c.batch, backward_data(p), dx_size));
  }
}

}  // namespace

}  // namespace lockstep::test::linear_test
