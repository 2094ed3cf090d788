// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums gradients over grains, threads and ranks while backward is still running.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/bucket_plan.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "comm/reduce/sum_check.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/sums.hpp"
#include "kernels/step_state.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// Travels in the last bucket after the gradients, so that every rank knows the same at the same step.
struct StepTotals {
  std::int64_t samples = 0;
  WideSum loss_units;  ///< sum over samples, in units of 2^-32 nats
  std::int64_t correct = 0;
  bool stop_requested = false;
  /// Numbers that are in no sum. They are samples whose loss is not finite, and gradients that are not or are too
  /// large (GradientReducer::Sums::refusals() tells of which tensors). Any makes the sums of this step worthless.
  std::int64_t refused = 0;

  /// Sum over samples, in nats, rounded once.
  double loss() const { return loss_units.value() / kLossScale; }
};

/// Seconds over all steps of a reducer.
struct ReducerTimes {
  double under_way =
      0;  ///< in which a bucket was under way. What wait() did not wait of it ran beside backward
  double comparing = 0;  ///< in which wait() compared the result with what was sent. Not in what it returns
  /// Each bucket's, in plan order, from begin_step() until it left.
  std::vector<double> until_left = {};
};

/// One per rank. A step:
///   begin_step(expected grains of this rank)
///   add(...) from any thread, for each range of each grain, as backward produces it
///   add_sums(...) once per grain
///   poll() between layers, from any thread: lets collectives progress
///   wait(): every bucket summed over all ranks; then sums() are valid until the next step
/// A bucket leaves when all grains of this rank have added all of it; buckets leave in plan order on every
/// rank.
class GradientReducer {
  struct State;

 public:
  class Sums;
  /// Some sums of a tensor, `first` counted in the arena.
  using SeeSums = std::function<void(std::size_t tensor, std::size_t first, std::span<std::int64_t> sums)>;

  /// @param units  of all tensors that the plan covers; borrowed. May change between steps, on all ranks
  /// alike
  GradientReducer(Communicator& comm, const BucketPlan& plan, const GradientUnits& units,
                  Determinism determinism);
  ~GradientReducer();

  /// @param notes_terms  terms are remembered: Sums::foreseen_refusals() and Sums::make_again() may be called
  void begin_step(int local_grains, bool stop_requested, bool notes_terms = false);
  /// Adds a grain's gradient sums for arena range [offset, offset + size); any thread may.
  void add(std::size_t offset, std::size_t size, const GradientTerms& gradients);
  void add(std::size_t offset, std::size_t size, const float* gradients) {
    add(offset, size, GradientTerms{.first = gradients});
  }
  void add_sums(const LossSums& sums, int samples);
  /// In place of add() on a rank without grains that stands in for one (begin_step(1)). Buckets then leave
  /// where they do on the others, between the sums that these need on the way.
  void pass_over(std::size_t offset, std::size_t size);
  void poll();
  /// @returns seconds spent waiting: communication that backward did not hide
  /// @throws SumsDifferError  on all ranks: on one of them exact sums have changed on their way
  double wait();
  Sums sums() const;
  const ReducerTimes& times() const;
  /// Borrows it: sees sums from the next step on. Under `world`, and where there are other ranks.
  void show_to(SumObserver& observer);

 private:
  std::unique_ptr<State> state_;
};

/// The sums of a reducer's last step.
class GradientReducer::Sums {
 public:
  const StepTotals& totals() const;
  /// Refusals of each tensor, over all ranks; all zero if nothing was refused.
  std::span<const TensorRefusals> refusals() const;
  /// Fingerprints of each tensor's sums of this rank's own grains, complete or not over all ranks. Only under `world`.
  SumFingerprints own_fingerprints() const;
  /// Fingerprint of all these sums together, as they were before they left. Nothing where sums are not compared.
  std::optional<std::uint64_t> fingerprint_that_left() const;
  /// Largest |sum| of each tensor, in its units (GradientUnits::refine). Only under `world`.
  std::vector<double> largest() const;
  /// Predicts what the same step will refuse in the current units. It says for each tensor whether a term of a rank
  /// is too large for them. Only under `world`, after a step that notes terms. Collective.
  std::vector<TensorRefusals> foreseen_refusals() const;
  /// Sums again in the current units, in which all terms fit, without computing the step again.
  /// Only under `world`, after a step that notes terms. Collective.
  /// @returns false, and leaves the sums as they are, where that takes terms that are not remembered; alike on all ranks
  bool make_again();
  /// Writes the mean gradient over the whole global batch, arena order.
  /// @param see  is called with all sums, some at a time, just before they are divided: while they are in the cache.
  ///             May change them. Only under `world`; may be empty
  void mean(float* gradient, const SeeSums& see = {});
  /// Shows all sums, some at a time. Only under `world`.
  void show(const SeeSums& see);

 private:
  friend GradientReducer;
  explicit Sums(State& state) : state_(state) {}

  State& state_;
};

inline GradientReducer::Sums GradientReducer::sums() const {
  return Sums(*state_);
}

// The trailing elements of the last bucket: what every rank must know after a step, besides the gradient.

/// One rank's or all ranks' sums; the element-wise sum of two of these is the one of both.
struct StepCounters {
  std::array<std::int64_t, kStepCounters> values{};  ///< by StepCounter

  StepTotals totals() const;
};

/// Counters of a grain's loss. Losses below the limit are one counter's, with the rounding that they always had.
/// @param narrow_limit  narrow_loss_limit() of the global batch's grains; 0: each loss takes all limbs (evaluations)
StepCounters loss_counters(const LossSums& sums, int samples, double narrow_limit);

/// Number of fp32 elements that carry the counters exactly. Six digits of 12 bits for each, whose sums over up to
/// 4,096 ranks are below 2^24 and so exact in fp32, in any order.
inline constexpr std::size_t kDigits = 6;
inline constexpr std::size_t kMostRanksInFp32 = 4096;
inline constexpr std::size_t kCounterFloats = kStepCounters * kDigits;

/// Reads them from the first kStepCounters elements of an int64 all-reduce.
StepCounters decode(std::span<const std::int64_t> elements);

/// As elements of an fp32 all-reduce, kCounterFloats of them.
void encode(const StepCounters& counters, std::span<float> elements);
StepCounters decode(std::span<const float> elements);

}  // namespace lockstep
