// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a network says about a picture, and how sure that is.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct Prediction {
  std::string picture;                ///< its name
  std::vector<float> probabilities;   ///< one for each class
  std::vector<std::string> done;      ///< to the picture
  std::vector<std::string> warnings;  ///< empty: the answer can be relied on as far as the network can

  /// Class indices, likeliest first.
  std::vector<int> ranking() const;
};

/// Adds a warning where the likeliest class is less likely than kSureProbability, or is so on average over
/// `variants`, the probabilities of the same picture written a little differently. On MNIST's test images Net
/// with 98.5 % is right in 99.5 of 100 cases above it, and in 74 below; with variants in 99.8.
inline constexpr float kSureProbability = 0.9F;
void warn_if_unsure(Prediction& prediction, const std::vector<std::vector<float>>& variants,
                    const std::vector<std::string>& class_names);

}  // namespace lockstep
