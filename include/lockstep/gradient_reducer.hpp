// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of your own float buffers over all ranks, with the same bits on any number of them. For programs that
/// compute gradients themselves.
#pragma once

#include <lockstep/communicator.hpp>
#include <lockstep/version.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

LOCKSTEP_BEGIN_NAMESPACE

/// Adds *terms*: gradients of fixed slices of a global batch, as one flat buffer of all tensors. (64 samples, say.) A term
/// is rounded once to 64-bit fixed point, in a unit of its tensor that follows the size of its gradients; integers are added
/// in any order. So a term must not depend on the rank that computes it, and ranks must share them as they like.
///
/// A step on every rank: begin_step(own terms), add() for each of them, mean().
class GradientReducer {
 public:
  /// @param tensors  numbers of each tensor, in the order of the buffers; each gets a unit of its own
  /// @param terms    of a step, all ranks together, at most
  GradientReducer(Communicator& comm, std::span<const std::size_t> tensors, std::int64_t terms);
  ~GradientReducer();
  GradientReducer(GradientReducer&&) noexcept;

  /// @param own_terms  how many this rank will add; may be 0
  void begin_step(int own_terms);
  /// Any thread. Copies the term. After a rank's last one its sums leave, while the program does something else.
  /// @param gradient  [all numbers], the sum over the samples of the slice
  void add(std::span<const float> gradient, std::int64_t samples);
  /// Waits for the sums over all ranks. Collective.
  /// @param gradient  [all numbers], overwritten with sum / samples of all terms of all ranks
  /// @returns these samples
  /// @throws InternalError  a term is NaN or infinite: says how many, and in which tensor the last. The step counts as
  ///                        not taken
  /// @throws UsageError     no step has begun, or all ranks together have more terms than the reducer was made for, or
  ///                        no samples
  std::int64_t mean(std::span<float> gradient);

  /// The units, which decide the last bits of what follows: to be saved beside the weights.
  struct Units {
    std::vector<std::int16_t> exponents = {};  ///< powers of 2, one a tensor
    std::int64_t changed_at = 0;               ///< the step that last changed one
    std::int64_t steps = 0;                    ///< taken
  };
  Units units() const;
  /// Goes on from there, on all ranks alike. @throws ShapeError, ConfigError  they are of no such reducer
  void restore(const Units& units);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

LOCKSTEP_END_NAMESPACE
