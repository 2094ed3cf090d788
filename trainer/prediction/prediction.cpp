// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The order of the classes, and the doubt where variants of a picture are answered otherwise.
#include "trainer/prediction/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep {

std::vector<int> Prediction::ranking() const {
  std::vector<int> classes(probabilities.size());
  std::iota(classes.begin(), classes.end(), 0);
  std::stable_sort(classes.begin(), classes.end(), [&](int a, int b) {
    return probabilities[static_cast<std::size_t>(a)] > probabilities[static_cast<std::size_t>(b)];
  });
  return classes;
}

void warn_if_unsure(Prediction& prediction, const std::vector<std::vector<float>>& variants,
                    const std::vector<std::string>& class_names) {
  if (prediction.probabilities.size() < 2) return;
  const auto best = static_cast<std::size_t>(prediction.ranking().front());
  Prediction mean = prediction;
  for (const auto& variant : variants) {
    for (std::size_t c = 0; c < variant.size(); ++c) mean.probabilities[c] += variant[c];
  }
  for (float& probability : mean.probabilities) probability /= static_cast<float>(variants.size() + 1);
  const float sure = std::min(prediction.probabilities[best], mean.probabilities[best]);
  if (sure >= kSureProbability) return;
  const std::vector<int> ranking = mean.ranking();
  const auto rival =
      static_cast<std::size_t>(static_cast<std::size_t>(ranking[0]) == best ? ranking[1] : ranking[0]);
  prediction.warnings.push_back(fmt::format("{} or {}?", class_names[best], class_names[rival]));
}

}  // namespace lockstep
