// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums gradients over grains, threads and ranks while backward is still running.
#pragma once

#include "comm/bucket_plan.hpp"
#include "comm/communicator.hpp"
#include "kernels/ops.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

/// `world`: exact 64-bit sums, the same bits for any number of ranks. `off`: fp32 all-reduce.
enum class Determinism { kWorld, kOff };

/// Travels in the last bucket behind the gradients, so that every rank knows the same at the same step.
struct StepTotals {
  std::int64_t samples = 0;
  double loss = 0;  ///< sum over samples
  std::int64_t correct = 0;
  bool stop_requested = false;
  bool not_finite = false;  ///< some rank saw NaN, infinity or a number too large for the exact sum
};

/// One per rank. A step:
///   begin_step(expected grains of this rank)
///   add(...) from any thread, for each range of each grain, as backward produces it
///   add_sums(...) once per grain
///   poll() between layers, from any thread: lets collectives progress
///   wait(): every bucket summed over all ranks; then totals() and mean_gradient() are valid
/// A bucket leaves when all grains of this rank have added all of it; buckets leave in plan order on every
/// rank.
class GradientReducer {
 public:
  /// @param global_grains  grains in a full global batch, which bounds the exact sums (kernels/exact_sum.hpp)
  GradientReducer(Communicator& comm, const BucketPlan& plan, std::size_t parameters, Determinism determinism,
                  std::int64_t global_grains);
  ~GradientReducer();

  void begin_step(int local_grains, bool stop_requested);
  /// Adds a grain's gradient sums for arena range [offset, offset + size); `ops` is the calling thread's own.
  void add(Ops& ops, std::size_t offset, std::size_t size, const float* gradients);
  void add_sums(const LossSums& sums, int samples);
  void poll();
  /// @returns seconds spent waiting: communication that backward did not hide
  double wait();

  const StepTotals& totals() const;
  /// Writes the mean gradient over the whole global batch, arena order.
  void mean_gradient(Ops& ops, float* gradient) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
