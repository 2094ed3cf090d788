// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Making the set `random`.
#include "data/sets/random_set.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/numerics/portable_math.hpp"

namespace lockstep {

namespace {

constexpr ImageShape kShape = {kRandomSetFeatures, 1, 1};

/// The class whose row of `map` has the largest product with the features.
std::int32_t label_of(const float* features, const float* map) {
  float products[kRandomSetClasses] = {};
  std::int32_t best = 0;
  for (std::int32_t c = 0; c < kRandomSetClasses; ++c) {
    for (int f = 0; f < kRandomSetFeatures; ++f) products[c] += map[c * kRandomSetFeatures + f] * features[f];
    if (products[c] > products[best]) best = c;
  }
  return best;
}

Dataset make_half(const DatasetOptions& options, DataStream stream, const char* name, std::int64_t samples) {
  float map[kRandomSetClasses * kRandomSetFeatures];
  Draws of_map(options.seed, DataStream::kRandomMap, 0);
  for (float& weight : map) weight = static_cast<float>(of_map.normal());

  Dataset set;
  set.name = name;
  set.shape = kShape;
  set.classes = kRandomSetClasses;
  set.features = AlignedBuffer<float>(static_cast<std::size_t>(samples) * kRandomSetFeatures);
  for (std::int64_t i = 0; i < samples; ++i) {
    Draws draws(options.seed, stream, static_cast<std::uint32_t>(i));
    float* features = set.features.data() + i * kRandomSetFeatures;
    for (int f = 0; f < kRandomSetFeatures; ++f) features[f] = static_cast<float>(draws.normal());
    set.labels.push_back(label_of(features, map));
  }
  return set;
}

}  // namespace

TrainTestData make_random_set(const DatasetOptions& options) {
  const auto train = options.train_samples != 0 ? options.train_samples : kRandomSetTrainSamples;
  const auto test = options.test_samples != 0 ? options.test_samples : kRandomSetTestSamples;
  require_memory(
      checked_product(checked_sum(train, test), kRandomSetFeatures * sizeof(float) + sizeof(std::int32_t)),
      "the data set random", advice("lower {sample_counts}"));
  TrainTestData data;
  data.train = make_half(options, DataStream::kRandomTrain, "random train", train);
  data.test = make_half(options, DataStream::kRandomTest, "random test", test);
  return data;
}

// Normal numbers.

double Draws::normal() {
  return normal_quantile((bits() + 0.5) / 4294967296.0);
}

}  // namespace lockstep
