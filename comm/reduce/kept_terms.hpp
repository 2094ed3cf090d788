// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Terms of a step that a rank remembers where units may become finer. It keeps each tensor's largest, and all of
/// small tensors: their sums can be made again in other units without computing the step again.
#pragma once

#include "comm/reduce/gradient_units.hpp"

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace lockstep {

class KeptTerms {
 public:
  struct Piece {
    std::size_t first;  ///< in the arena
    std::vector<float> terms;
  };

  /// Keeps the smallest tensors, as many as a global batch has at most 2^20 terms of. They are the same on all ranks.
  /// Biases before a batch_norm are among them, whose terms cancel and ask for finer units again and again.
  /// @param units  borrowed
  explicit KeptTerms(const GradientUnits& units);

  /// @param notes  this step's terms are wanted
  void begin_step(bool notes);
  bool notes() const { return notes_; }
  /// A grain's terms of arena elements [offset, offset + terms). Any thread.
  void note(std::size_t offset, std::span<const float> terms);

  /// Largest |term| of this rank. 0 where nothing was noted.
  float largest(std::size_t tensor) const { return largest_[tensor]; }
  bool keeps(std::size_t tensor) const { return keeps_[tensor]; }
  /// All that was noted of a tensor that is kept.
  const std::vector<Piece>& pieces(std::size_t tensor) const { return pieces_[tensor]; }

 private:
  const GradientUnits& units_;
  std::vector<bool> keeps_;
  bool notes_ = false;
  std::mutex mutex_;
  std::vector<float> largest_;              ///< under mutex_
  std::vector<std::vector<Piece>> pieces_;  ///< one list for each tensor; under mutex_
};

}  // namespace lockstep
