// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The unit of each tensor's exact sums, and how it follows the size of the gradients. All ranks change
/// theirs alike, because they decide by sums over all ranks.
#pragma once

#include "kernels/numerics/sums.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// How gradients are added over grains and ranks. World: as exact integers, in the units below. Off: as fp32.
enum class Determinism { kWorld, kOff };

/// Terms of one tensor's gradient that its sums could not take, over all ranks.
struct TensorRefusals {
  std::int64_t too_large = 0;   ///< finite, not below the limit
  std::int64_t not_finite = 0;  ///< NaN, infinite
  friend bool operator==(const TensorRefusals&, const TensorRefusals&) = default;
};

class GradientUnits {
 public:
  /// @param sizes          elements of each tensor, in arena order
  /// @param global_grains  grains in a full global batch, which bounds the sums
  /// (kernels/numerics/sums.hpp)
  GradientUnits(std::span<const std::size_t> sizes, std::int64_t global_grains);

  std::int64_t global_grains() const { return global_grains_; }
  std::size_t tensors() const { return exponents_.size(); }
  std::size_t parameters() const { return ends_.back(); }
  std::size_t begin(std::size_t tensor) const { return tensor == 0 ? 0 : ends_[tensor - 1]; }
  std::size_t end(std::size_t tensor) const { return ends_[tensor]; }
  /// The tensor that holds this element of the arena.
  std::size_t tensor_at(std::size_t element) const;

  /// Exponent of each tensor: its unit is 2^exponent.
  std::span<const std::int16_t> exponents() const { return exponents_; }
  /// The tensors whose exponents are others than these were.
  std::vector<std::size_t> tensors_changed_from(std::span<const std::int16_t> exponents) const;
  /// The optimiser step at which one of them last changed; 0 before the first change.
  std::int64_t changed_at() const { return changed_at_; }
  /// Goes on from a checkpoint.
  void restore(std::span<const std::int16_t> exponents, std::int64_t changed_at);
  const ExactFormat& format(std::size_t tensor) const { return formats_[tensor]; }

  /// To be called after step `global_step`, if terms were too large. Their tensors' units become 2^16 times
  /// as large, but no larger than it takes for every float.
  void raise(std::span<const TensorRefusals> refusals, std::int64_t global_step);

  /// To be called after a step whose terms all fit. A tensor whose largest |sum|, in its units, has fewer
  /// than 24 bits gets a unit in which it has 41; one whose sums are all zero gets one 2^-64 times as large.
  /// No smaller than 2^kLeastExactExponent, in which every float is exact.
  /// @param largest_sums  one for each tensor; infinity: this tensor keeps its unit
  /// @returns true if any unit changed: the step is then to be repeated
  bool refine(std::span<const double> largest_sums, std::int64_t global_step);

  /// The steps at which refine() is asked. They are every multiple of 1,024, and 1, 2, 4, ... 512 steps after the
  /// last change, so that one step with huge gradients spoils only itself. Equal on all ranks and after
  /// a resume.
  bool is_refined_at(std::int64_t global_step) const;

 private:
  void set_exponent(std::size_t tensor, int exponent);

  std::vector<std::size_t> ends_;  ///< in the arena
  std::vector<std::int16_t> exponents_;
  std::vector<ExactFormat> formats_;  ///< computed from the exponents
  std::int64_t global_grains_;
  std::int64_t changed_at_ = 0;
  int wanted_bits_, least_bits_;  ///< for a tensor's largest sum
  int largest_exponent_;          ///< with which every float is below the limit
};

/// The largest |sum|, as refine() wants it.
double largest_magnitude(std::span<const std::int64_t> sums);

}  // namespace lockstep
