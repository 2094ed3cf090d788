// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/set_facts.hpp"

#include "common/error.hpp"
#include "data/image_set.hpp"
#include "data/random_set.hpp"
#include "data/synthetic_set.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr ImageShape kSmallImage{1, 28, 28};
constexpr std::int64_t kTrainImages = 60000, kTestImages = 10000;  // of MNIST and its relatives
/// Fashion-MNIST and KMNIST fill their images; a shoe or a letter may well be in pieces.
constexpr PictureFrame kWhole{.share = 1, .centre_by_mass = false, .one_figure = false};

std::vector<std::string> numbered(int classes) {
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

SetFacts set_facts(const std::string& set) {
  if (set == "mnist") {
    return {.shape = kSmallImage,
            .class_names = numbered(kImageSetClasses),
            .train_samples = kTrainImages,
            .test_samples = kTestImages};
  }
  if (set == "synthetic") {
    return {.shape = kSmallImage,
            .class_names = numbered(kSyntheticSetClasses),
            .train_samples = kSyntheticSetTrainSamples,
            .test_samples = kSyntheticSetTestSamples};
  }
  if (set == "fashion-mnist") {
    return {.shape = kSmallImage,
            .class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                            "Sneaker", "Bag", "Ankle boot"},
            .train_samples = kTrainImages,
            .test_samples = kTestImages,
            .frame = kWhole};
  }
  if (set == "kmnist") {
    return {.shape = kSmallImage,
            .class_names = {"お", "き", "す", "つ", "な", "は", "ま", "や", "れ", "を"},
            .train_samples = kTrainImages,
            .test_samples = kTestImages,
            .frame = kWhole};
  }
  if (set == "random") {
    return {.shape = {kRandomSetFeatures, 1, 1},
            .class_names = numbered(kRandomSetClasses),
            .train_samples = kRandomSetTrainSamples,
            .test_samples = kRandomSetTestSamples,
            .is_fp32 = true};
  }
  throw ConfigError(
      fmt::format("data.set: unknown set '{}'; one of mnist, fashion-mnist, kmnist, random, synthetic", set));
}

}  // namespace lockstep
