// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Averages of the weights that follow them, step by step or epoch by epoch. It says which there are, and what each
/// step adds.
#pragma once

#include "trainer/training/options.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// The names of the averages, among the buffers of an optimiser. RUN@ema is a checkpoint whose weights are such a
/// buffer.
inline constexpr const char *kEmaBuffer = "ema", *kSwaBuffer = "swa";

/// The averages of the weights that train.ema and train.swa ask for, in buffers like the optimiser's. What is kept
/// beside the parameters, such as running statistics, is not averaged: an average goes with that of the weights.
class WeightAverages {
 public:
  WeightAverages(const UpdateOptions& options, std::int64_t steps_per_epoch);

  std::size_t count() const { return names_.size(); }
  /// "ema", "swa"
  const std::vector<std::string>& names() const { return names_; }
  /// Share of the distance to the new weights that average i adds. @param step  taken before this one
  float share(std::size_t i, std::int64_t step) const;
  /// True if average i is an average of anything after so many steps.
  bool exists(std::size_t i, std::int64_t steps) const;
  /// The constant blend factor of average i, or 0 if it varies. (The first step always copies.)
  float share_of_each_step(std::size_t i) const {
    return names_[i] == kEmaBuffer ? static_cast<float>(1 - ema_) : 0;
  }

 private:
  double ema_;
  std::int64_t first_end_;  ///< steps up to the first end of an epoch that counts
  std::int64_t steps_per_epoch_;
  std::vector<std::string> names_;
};

}  // namespace lockstep
