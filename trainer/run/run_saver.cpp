// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A state is saved once, and a run ends only with its last state on disk.
#include "trainer/run/run_saver.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace lockstep {

void RunSaver::is_saved(const RunState& state) {
  saved_step_ = state.position.global_step;
  saved_evaluated_ = state.is_evaluated();
}

bool RunSaver::is_best(const RunState& state) const {
  if (!job_.run.keep.best) return false;
  bool best = directory_ != nullptr && directory_->would_be_best(state.test_accuracy);
  comm_.broadcast(std::as_writable_bytes(std::span(&best, 1)), 0);
  return best;
}

/// One pass over weights that are read anyway, in place of one in every step's update: a weight that is NaN or infinite
/// makes the losses of the next step so. What does not show there must not be evaluated, saved or hashed.
void RunSaver::require_finite_weights(const RunState& state) {
  const std::int64_t step = state.position.global_step;
  if (step == finite_step_) return;
  const InPhase phase(comm_.activity(), Phase::kChecking);
  strategy_.collect();
  agree(comm_, [&] {
    if (comm_.rank() != 0) return;
    std::string wrong;
    const std::span<const float> weights = strategy_.whole_state().weights;
    for (const Parameter& tensor : setup_.network.parameters().tensors()) {
      const std::string here = unusable_numbers(tensor.name, weights.subspan(tensor.offset, tensor.size));
      if (!here.empty()) wrong += (wrong.empty() ? "" : ", ") + here;
    }
    if (wrong.empty()) return;
    throw InternalError(fmt::format(
        "after step {}: {}. What helps: lower train.optimizer.lr or train.optimizer.weight_decay. "
        "Nothing of this step was saved",
        step, wrong));
  });
  finite_step_ = step;
}

void RunSaver::save(const RunState& state) {
  const bool saved = saved_step_ == state.position.global_step && saved_evaluated_ == state.is_evaluated();
  if (saved) return;
  if (prepare_) prepare_();
  require_finite_weights(state);
  wait_for_disk();  // of the save before
  if (directory_ != nullptr) directory_->save(snapshot(state, job_, setup_, comm_, strategy_));
  is_saved(state);
}

/// Ranks other than 0 hear of it every second, so that a slow disk is not taken for a lost rank.
void RunSaver::wait_for_disk() {
  const auto pulse = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<std::chrono::duration<double>>(std::chrono::seconds(1), comm_.timeout() / 4));
  for (char saved = 0; saved == 0;) {
    saved = directory_ != nullptr && directory_->finished_within(pulse) ? 1 : 0;
    comm_.broadcast(std::as_writable_bytes(std::span(&saved, 1)), 0);
  }
}

void RunSaver::wait_until_saved(const char* what_ends) {
  const InPhase phase(comm_.activity(), Phase::kSaving);
  wait_for_disk();
  agree(comm_, [&] {
    if (directory_ == nullptr) return;
    try {
      directory_->finish();
    } catch (const IoError& error) {
      throw IoError(fmt::format(
          "{} at step {}, but that step is not saved: {}; the same command goes on from the newest "
          "checkpoint in {}, if there is one",
          what_ends, with_thousands(saved_step_), error.what(), job_.run.dir));
    }
  });
}

}  // namespace lockstep
