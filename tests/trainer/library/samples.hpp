// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small data sets for the tests of the library, and options that fit them.
#pragma once

#include "tests/support/prelude.hpp"

#include <lockstep/lockstep.hpp>

namespace lockstep_test {

inline constexpr lockstep::ImageShape kShape = {1, 4, 4};
inline constexpr std::size_t kFeatures = 16;
inline constexpr int kClasses = 4;
inline const lockstep::TrainerOptions kOptions = {
    .global_batch = 20, .optimizer = lockstep::sgd(0.2, 0.9, lockstep::nesterov), .epochs = 3, .grain = 4};

/// The brightest row tells the class.
inline void make_sample(std::int64_t index, std::span<float> sample) {
  for (std::size_t p = 0; p < sample.size(); ++p) {
    const auto noise = static_cast<float>((static_cast<std::size_t>(index) * 37 + p * 101) % 61) / 61;
    sample[p] = noise + (static_cast<std::int64_t>(p / 4) == index % kClasses ? 2.0F : 0.0F);
  }
}

inline lockstep::Dataset bytes_set(int samples) {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;
  std::vector<float> sample(kFeatures);
  for (int i = 0; i < samples; ++i) {
    make_sample(i, sample);
    for (const float number : sample) bytes.push_back(static_cast<std::uint8_t>(80 * number));
    labels.push_back(i % kClasses);
  }
  return lockstep::Dataset::from_bytes(kShape, kClasses, bytes, labels);
}

}  // namespace lockstep_test
