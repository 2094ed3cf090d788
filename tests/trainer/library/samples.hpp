// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// For the tests of the library: small data sets and networks, options that fit them, and expected errors.
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

/// A layer alone.
inline lockstep::Network small_net() {
  return lockstep::Network::parse("layers: [{linear: classes}]", kShape, kClasses);
}

/// A layer that is never computed.
class Uncomputed final : public lockstep::Layer {
 public:
  using Layer::Layer;
  void forward(const lockstep::ForwardPass& /*pass*/) const override {}
  void backward_data(const lockstep::BackwardPass& /*pass*/) const override {}
};

// Errors.

/// Calls it, and looks for the parts in what it throws.
template <class Action>
void expect_error(lockstep::ExitCode code, const std::vector<std::string>& parts, const Action& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown: " << parts.front();
  } catch (const lockstep::Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in: " << error.what();
  }
}
inline constexpr auto kUsage = lockstep::ExitCode::kUsage;

}  // namespace lockstep_test
