// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fully connected layers on a device with an epilogue of their own: the bits of the two ops one after the other.
#include "tests/kernels/device/linear_problem.hpp"

#include <random>

namespace lockstep::test::linear_test {
namespace {

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
