// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers of a run that change from step to step, beside its tensors.
#pragma once

#include "kernels/numerics/sums.hpp"
#include "kernels/sum_cuts.hpp"

#include <cstdint>
#include <optional>

namespace lockstep {

/// Sums of training since the last report: exact, so that neither ranks nor a resume change a digit.
struct LossWindow {
  std::int64_t steps = 0, samples = 0;
  std::int64_t correct = 0;  ///< samples whose answer was right, as they were trained on
  WideSum loss_units;        ///< sum over samples, in units of 2^-32 nats

  void add(const LossWindow& more) {
    steps += more.steps;
    samples += more.samples;
    correct += more.correct;
    loss_units += more.loss_units;
  }
  double mean() const { return loss_units.value() / kLossScale / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
  friend bool operator==(const LossWindow&, const LossWindow&) = default;
};

/// Composition of the sums in the steps before a checkpoint (kernels/sum_cuts.hpp). A replay with the same
/// composition gets the same bits from `since` on.
struct CheckpointArithmetic {
  std::int64_t version = kArithmeticVersion;  ///< the writing program's
  std::int64_t since = 0;                     ///< the step from which on all were computed by that version
  friend bool operator==(const CheckpointArithmetic&, const CheckpointArithmetic&) = default;
};

/// Record for train.patience: evaluations after epochs and within them.
struct CheckpointPatience {
  double best = -1;                 ///< the highest accuracy; -1: none was measured yet
  std::int64_t without_better = 0;  ///< evaluations since then
  std::int64_t counted_from = 0;    ///< those after this step: train.patience was given there

  void count(double accuracy) {
    without_better = accuracy > best ? 0 : without_better + 1;
    best = accuracy > best ? accuracy : best;
  }
  friend bool operator==(const CheckpointPatience&, const CheckpointPatience&) = default;
};

/// The part of a run that changes from step to step, beside weights and what the optimiser remembers. Plain numbers,
/// so that it can be broadcast. What is added here is added to the list in manifest.cpp, and no resume loses it.
struct RunState {
  std::int64_t step = 0;           ///< optimiser steps taken in all
  std::int64_t epoch = 0;          ///< epochs completed, their evaluation included
  std::int64_t step_in_epoch = 0;  ///< steps taken in the epoch under way

  /// Sums over the steps of the epoch under way.
  std::int64_t epoch_samples = 0, epoch_correct = 0;
  WideSum epoch_loss_units;  ///< in units of 2^-32 nats: neither ranks nor pauses leave a trace
  /// Steps of this epoch since run.print_loss_every_steps last printed. A checkpoint has them without the
  /// answers; nothing where its run prints none.
  std::optional<LossWindow> unprinted = LossWindow();
  LossWindow unlogged;  ///< since the last event "step": in a checkpoint without their loss
  CheckpointArithmetic arithmetic;
  std::int64_t replayed = 0;  ///< the last step whose shares other ranks computed again, all right; 0: none
  std::optional<double> test_accuracy;  ///< that of these very weights; nothing if they were not evaluated
  std::optional<double> validation_accuracy;  ///< as test_accuracy, on samples that data.validation holds out
  /// Counted whether the job asks for it or not; in a checkpoint where train.patience is given.
  std::optional<CheckpointPatience> patience = CheckpointPatience();

  /// By which the checkpoints of a run are compared.
  std::optional<double> accuracy() const { return validation_accuracy ? validation_accuracy : test_accuracy; }
  double epoch_loss() const { return epoch_loss_units.value() / kLossScale; }  ///< sum over samples, in nats
  LossWindow epoch_so_far() const { return {step_in_epoch, epoch_samples, epoch_correct, epoch_loss_units}; }
  /// Steps that moved the weights.
  void add(const LossWindow& series) {
    step += series.steps;
    step_in_epoch += series.steps;
    epoch_samples += series.samples;
    epoch_correct += series.correct;
    epoch_loss_units += series.loss_units;
    unprinted->add(series);
    unlogged.add(series);
    if (series.steps > 0) test_accuracy = validation_accuracy = std::nullopt;
  }
  void start_next_epoch() {
    ++epoch;
    step_in_epoch = epoch_samples = epoch_correct = 0;
    epoch_loss_units = {};
    unprinted.emplace();
    unlogged = {};
  }
  friend bool operator==(const RunState&, const RunState&) = default;
};

}  // namespace lockstep
