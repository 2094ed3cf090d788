// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/set_facts.hpp"

#include "data/image_set.hpp"
#include "data/random_set.hpp"
#include "kernels/runtime/error.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr ImageShape kSmallImage{1, 28, 28};
/// Fashion-MNIST and KMNIST fill their images; a shoe or a letter may well be in pieces.
constexpr PictureFrame kWhole{.share = 1, .centre_by_mass = false, .one_figure = false};

std::vector<std::string> numbered(int classes) {
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

SetFacts set_facts(const std::string& set) {
  if (set == "mnist" || set == "synthetic") return {kSmallImage, numbered(kImageSetClasses), {}};
  if (set == "fashion-mnist") {
    return {kSmallImage,
            {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
             "Ankle boot"},
            kWhole};
  }
  if (set == "kmnist")
    return {kSmallImage, {"お", "き", "す", "つ", "な", "は", "ま", "や", "れ", "を"}, kWhole};
  if (set == "random") return {{kRandomSetFeatures, 1, 1}, numbered(kRandomSetClasses), {}};
  throw ConfigError(
      fmt::format("data.set: unknown set '{}'; one of mnist, fashion-mnist, kmnist, random, synthetic", set));
}

}  // namespace lockstep
