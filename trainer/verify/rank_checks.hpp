// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Comparisons between the ranks of a strategy that compute and hold the same. As an observer of its steps it computes
/// shares again; and copies and rows of fingerprints are compared when a run asks for it.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/step_observer.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/training/teams.hpp"
#include "trainer/verify/wrong_rank.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

/// All errors come on all ranks, and each says the same.
class RankChecks final : public StepObserver {
 public:
  /// Borrows all.
  RankChecks(ParallelStrategy& strategy, const TrainingSetup& setup, Communicator& comm, bool on_gpu);

  bool looks_at(std::int64_t global_step) const override {
    return replay_every_ > 0 && (global_step + 1) % replay_every_ == 0;
  }
  /// @throws WrongRankError  names the rank whose memory, or the link that changed the sums
  void sums_differ(const SumsDifferError& error, std::int64_t step) override;
  /// In the steps that it looks at, teams compute each other's shares again. @throws WrongRankError
  void before_update(ReducedStep& step) override;

  /// Steps from one replay of shares to the next; 0: there are none.
  std::int64_t replays_every() const { return replay_every_; }
  /// Compares the copies of weights, running statistics and what the optimiser remembers that several ranks hold.
  /// Nothing to do where there is one. Collective.
  /// @param step  for the message
  /// @throws WrongRankError  names the rank that differs
  void compare_copies(std::int64_t step);
  /// Compares this rank's row of a step (StepSeries::fingerprints) with those of ranks that hold the same. As above.
  void compare_rows(const std::vector<std::uint64_t>& row, std::int64_t step);
  /// Combines fingerprints of steps that were taken: makes the rows of rank 0 (StepSeries::fingerprints) those of the
  /// whole network. Collective, for as many steps on all ranks.
  /// @param rows      [steps][slots]
  /// @param own_sums  StepSeries::own_sums of these steps
  CombinedFingerprints combine(std::span<std::uint64_t> rows, std::size_t slots,
                               std::span<const std::uint64_t> own_sums);

 private:
  std::vector<ComparedPart> state_parts() const;
  /// This rank's part of the row, and zeros for what it does not hold.
  SumFingerprints state_fingerprints();
  SumFingerprints over_members(const SumFingerprints& mine) const;

  ParallelStrategy& strategy_;
  const TrainingSetup& setup_;
  Communicator& comm_;
  Teams teams_;
  std::int64_t replay_every_;
};

/// Computes in each step the shares of so many ranks, one after the other. A proof asks which of them was wrong.
class ShareWeighing final : public StepObserver {
 public:
  /// @param shares   by rank; the same on all ranks here
  /// @param tensors  that the network trains
  ShareWeighing(std::vector<std::vector<Grain>> shares, std::size_t tensors, Communicator& comm)
      : shares_(std::move(shares)), tensors_(tensors), comm_(comm) {}

  bool looks_at(std::int64_t /*global_step*/) const override { return true; }
  void before_update(ReducedStep& step) override;

  /// Weighted checksum of the shares of the last step: RankSums::sums of those ranks. Nothing: some rank here has no
  /// room for them.
  std::optional<std::uint64_t> sum() const { return sum_; }

 private:
  std::vector<std::vector<Grain>> shares_;
  std::size_t tensors_;
  Communicator& comm_;
  std::optional<std::uint64_t> sum_;
};

}  // namespace lockstep
