// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Terms of a step that a rank remembers where units may become finer. It keeps each tensor's largest, and all of
/// small tensors, in the order of arrival: their sums can be made again in other units without computing the step again.
#pragma once

#include "comm/reduce/gradient_units.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
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
  explicit KeptTerms(const GradientUnits& units)
      : units_(units), keeps_(units.tensors()), largest_(units.tensors()), pieces_(units.tensors()) {
    std::vector<std::size_t> by_size(units.tensors());
    std::iota(by_size.begin(), by_size.end(), std::size_t{0});
    const auto size = [&units](std::size_t tensor) { return units.end(tensor) - units.begin(tensor); };
    std::ranges::stable_sort(by_size, {}, size);
    constexpr std::int64_t kMostTerms = std::int64_t{1} << 20;  // 4 MiB on a rank that computes all of it
    auto room = static_cast<std::size_t>(kMostTerms / units.global_grains());
    for (const std::size_t tensor : by_size) {
      if (size(tensor) > room) break;
      room -= size(tensor);
      keeps_[tensor] = true;
    }
  }

  /// @param notes  this step's terms are wanted
  void begin_step(bool notes) {
    notes_ = notes;
    std::ranges::fill(largest_, 0.0F);
    for (std::vector<Piece>& pieces : pieces_) pieces.clear();
  }
  bool notes() const { return notes_; }
  /// A grain's terms of arena elements [offset, offset + terms). Any thread.
  void note(std::size_t offset, std::span<const float> terms) {
    std::size_t i = 0;
    for (std::size_t tensor = units_.tensor_at(offset); i < terms.size(); ++tensor) {
      const std::span<const float> part =
          terms.subspan(i, std::min(terms.size() - i, units_.end(tensor) - (offset + i)));
      float largest = 0;
      for (const float term : part) largest = std::max(largest, std::abs(term));
      const std::lock_guard lock(mutex_);
      largest_[tensor] = std::max(largest_[tensor], largest);
      if (keeps_[tensor]) pieces_[tensor].push_back({offset + i, {part.begin(), part.end()}});
      i += part.size();
    }
  }

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
