// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Initial weights: ranges, moments, and bits that no machine may change.
#include "models/initial_weights.hpp"

#include "models/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

struct Moments {
  double mean = 0, deviation = 0, fourth = 0;
};

Moments moments_of(const std::vector<float>& numbers) {
  Moments m;
  const auto count = static_cast<double>(numbers.size());
  for (const float x : numbers) m.mean += x / count;
  double variance = 0;
  for (const float x : numbers) variance += std::pow(x - m.mean, 2) / count;
  for (const float x : numbers) m.fourth += std::pow(x - m.mean, 4) / count / (variance * variance);
  m.deviation = std::sqrt(variance);
  return m;
}

TEST(InitialWeightsTest, UniformFillsTheRangeOfItsFanIn) {
  std::vector<float> weights(100003);
  InitialWeights(1, 0).fill_uniform(25, weights);
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  EXPECT_GE(*least, -0.2F);
  EXPECT_LT(*least, -0.1999F);
  EXPECT_LE(*most, 0.2F);
  EXPECT_GT(*most, 0.1999F);
  EXPECT_NEAR(moments_of(weights).mean, 0, 0.002);
  EXPECT_NEAR(moments_of(weights).deviation, 0.2 / std::sqrt(3.0), 0.001);
}

TEST(InitialWeightsTest, NormalHasItsDeviationAndTails) {
  std::vector<float> weights(200000);
  InitialWeights(1, 0).fill_normal(0.01, weights);
  const Moments m = moments_of(weights);
  EXPECT_NEAR(m.mean, 0, 1e-4);
  EXPECT_NEAR(m.deviation, 0.01, 1e-4);
  EXPECT_NEAR(m.fourth, 3, 0.06);
  EXPECT_GT(*std::max_element(weights.begin(), weights.end()), 0.04F);
}

TEST(InitialWeightsTest, TensorsAndSeedsDoNotShareNumbers) {
  std::vector<float> base(8), other_tensor(8), other_seed(8);
  InitialWeights(1, 0).fill_uniform(4, base);
  InitialWeights(1, 1).fill_uniform(4, other_tensor);
  InitialWeights(2, 0).fill_uniform(4, other_seed);
  EXPECT_NE(base, other_tensor);
  EXPECT_NE(base, other_seed);
}

TEST(InitialWeightsTest, LongerTensorBeginsLikeAShorterOne) {
  std::vector<float> shorter(5), longer(9);
  InitialWeights(1, 0).fill_uniform(4, shorter);
  InitialWeights(1, 0).fill_uniform(4, longer);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

TEST(InitialiseTest, DefaultIsPytorchsForEveryTensor) {
  const Network net = Network::load("net", {1, 28, 28}, 10);
  std::vector<float> weights(net.parameters().size);
  net.initialise(1234, weights);
  for (const Parameter& parameter : net.parameters().parameters) {
    const auto bound = static_cast<float>(1 / std::sqrt(parameter.fan_in));
    const auto magnitude = [](float a, float b) { return std::abs(a) < std::abs(b); };
    const auto* const first = weights.data() + parameter.offset;
    const float largest = std::abs(*std::max_element(first, first + parameter.size, magnitude));
    EXPECT_LE(largest, bound) << parameter.name;
    EXPECT_GT(largest, bound / 2) << parameter.name;
  }
}

TEST(InitialiseTest, NormalLeavesBiasesZero) {
  const Network network = Network::parse("{init: {normal: 0.5}, layers: [linear: 100, linear: classes]}",
                                         "t.yaml", {100, 1, 1}, 10);
  std::vector<float> weights(network.parameters().size, 7.0F);
  network.initialise(1, weights);
  const std::vector<float> kernel(weights.begin(), weights.begin() + 10000);
  EXPECT_NEAR(moments_of(kernel).deviation, 0.5, 0.02);
  EXPECT_EQ(std::vector<float>(weights.begin() + 10000, weights.begin() + 10100), std::vector<float>(100));
}

TEST(InitialiseTest, SameSeedGivesSameBits) {
  const Network net = Network::load("net", {1, 28, 28}, 10);
  std::vector<float> once(net.parameters().size), again(once.size()), other(once.size());
  net.initialise(1, once);
  net.initialise(1, again);
  net.initialise(2, other);
  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
}

TEST(InitialiseTest, AScaleOfTheJobCountsInPlaceOfTheModels) {
  const Network plain = Network::load("lenet", {1, 28, 28}, 10);
  const Network own = Network::parse("init: {normal: 0.01}\n" + plain.yaml(), "t.yaml", {1, 28, 28}, 10);
  std::vector<float> by_job(plain.parameters().size), by_model(by_job.size());
  plain.initialise(3, by_job, 0.01);
  own.initialise(3, by_model);
  EXPECT_EQ(by_job, by_model);
}

}  // namespace
}  // namespace lockstep
