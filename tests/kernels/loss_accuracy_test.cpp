// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How far mean gradients of losses are from double precision.
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace lockstep::loss_accuracy_test {
namespace {

/// Distance for two classes with smoothed targets: the median of many batches, relative.
double distance_of_pairs(float smoothing, bool weighted) {
  constexpr int kBatch = 64, kBatches = 401;
  LossShape shape = {kBatch, kBatch, 2};
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> weight(0.2F, 3);
  std::vector<double> distances;
  for (unsigned seed = 0; seed < kBatches; ++seed) {
    const float weights[] = {weight(generator), weight(generator)};
    shape.rule = {.label_share = 1 - smoothing, .spread = smoothing / 2};
    if (weighted) shape.rule.class_weights = weights, shape.rule.weight_sum = weights[0] + weights[1];
    const auto logits = reference::random_tensor(2 * kBatch, seed, 1.0F);
    std::vector<std::int32_t> labels(kBatch);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(generator() % 2);
    std::vector<float> got(2 * kBatch);
    LossSums sums;
    cpu::loss_and_gradient(shape, logits.data(), labels.data(), got.data(), &sums);
    const auto wanted = reference::loss_by_rule(shape, reference::widen(logits.span()), labels).gradient;
    double error = 0, size = 0;
    for (std::size_t c = 0; c < 2; ++c) {
      double sum = 0, exact = 0;
      for (std::size_t n = c * kBatch; n < (c + 1) * kBatch; ++n) sum += got[n], exact += wanted[n];
      error += (sum - exact) * (sum - exact), size += exact * exact;
    }
    distances.push_back(std::sqrt(error / size));
  }
  std::ranges::nth_element(distances, distances.begin() + kBatches / 2);
  return distances[kBatches / 2];
}

/// The softmax times all targets less the target, as of more classes, is 1.1e-7, 1.1e-7 and 3.7e-7 away.
TEST(LossAccuracyTest, GradientsOfTwoSmoothedClassesDoNotCancel) {
  EXPECT_LT(distance_of_pairs(0.1F, true), 8e-8);
  EXPECT_LT(distance_of_pairs(0.3F, true), 8e-8);
  EXPECT_LT(distance_of_pairs(0.3F, false), 8e-8);
}

}  // namespace
}  // namespace lockstep::loss_accuracy_test
