// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How a run is saved: a state once, and a run ends only with its last state on disk.
#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/run/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace lockstep {

namespace {

int evaluations_of(const RunState& state) {
  return int{state.test_accuracy.has_value()} + int{state.validation_accuracy.has_value()};
}

}  // namespace

void TrainingRun::note_saved() {
  saved_step_ = state_.step;
  saved_evaluations_ = evaluations_of(state_);
}

bool TrainingRun::is_saved() const {
  return saved_step_ == state_.step && saved_evaluations_ == evaluations_of(state_);
}

bool TrainingRun::is_best() const {
  if (!job_.run.keep.best) return false;
  bool best = directory_ && directory_->would_be_best(evaluations_.judged().accuracy());
  broadcast(comm_, best);
  return best;
}

/// Searches for NaN and infinity where weights are read anyway, not in every update: the next losses show
/// those. Weights whose losses do not show it must not be evaluated, saved or hashed.
void TrainingRun::require_finite_weights() {
  const std::int64_t step = state_.step;
  if (step == finite_step_) return;
  const InPhase phase(comm_.activity(), Phase::kChecking);
  strategy_->collect();
  agree(comm_, [&] {
    if (comm_.rank() != 0) return;
    std::string wrong;
    const std::span<const float> weights = strategy_->whole_state().weights;
    for (const Parameter& tensor : setup_.network.parameters().tensors()) {
      const std::string here = unusable_numbers(tensor.name, weights.subspan(tensor.offset, tensor.size));
      if (!here.empty()) wrong += (wrong.empty() ? "" : ", ") + here;
    }
    if (wrong.empty()) return;
    throw InternalError(
        fmt::format("after step {}: {}. Try this: lower train.optimizer.lr or train.optimizer.weight_decay. "
                    "Nothing of this step was saved",
                    step, wrong));
  });
  finite_step_ = step;
}

void TrainingRun::save() {
  if (is_saved()) return;
  const TimeSpan span(comm_.activity().timeline(), Work::kCheckpoint);
  compare_copies();
  require_finite_weights();
  wait_for_disk();  // of the save before
  if (directory_) directory_->save(checkpoint_of(state_, job_, setup_, comm_, strategy_->whole_state()));
  note_saved();
}

/// Reports to other ranks every second, so that a slow disk is not taken for a lost rank.
void TrainingRun::wait_for_disk() {
  const auto pulse = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<std::chrono::duration<double>>(std::chrono::seconds(1), comm_.timeout() / 4));
  for (char saved = 0; saved == 0;) {
    saved = directory_ && directory_->finished_within(pulse) ? 1 : 0;
    broadcast(comm_, saved);
  }
}

void TrainingRun::wait_until_saved(const char* what_ends) {
  const InPhase phase(comm_.activity(), Phase::kSaving);
  wait_for_disk();
  agree(comm_, [&] {
    if (!directory_) return;
    try {
      directory_->finish();
    } catch (const IoError& error) {
      throw IoError(fmt::format(
          "{} at step {}, but that step is not saved: {}; the same command resumes from the newest "
          "checkpoint in {}, if there is one",
          what_ends, with_thousands(saved_step_), error.what(), job_.run.dir));
    }
  });
}

void TrainingRun::end_trace() {
  const std::string line = trace_.end(state_.step, job_.run.dir);
  if (!line.empty()) say(line);
}

// The trail: rows of all ranks are put together every so many steps, and become records.

void TrainingRun::add_to_trail(const StepSeries& series) {
  constexpr std::size_t kMostSteps = 64;  // between two times
  if (trail_slots_ == 0) return;
  LOCKSTEP_CHECK(series.fingerprints.size() == static_cast<std::size_t>(series.steps) * trail_slots_);
  trail_rows_.insert(trail_rows_.end(), series.fingerprints.begin(), series.fingerprints.end());
  own_sums_.insert(own_sums_.end(), series.own_sums.begin(), series.own_sums.end());
  if (trail_rows_.size() >= kMostSteps * trail_slots_) flush_trail();
}

void TrainingRun::compare_copies() {
  const InPhase phase(comm_.activity(), Phase::kChecking);
  flush_trail();
  checks_->compare_copies(state_.step);
}

/// Rows that differ between ranks are written, too, before the run ends: proofs read them.
void TrainingRun::flush_trail() {
  if (trail_rows_.empty()) return;
  const auto own_rows = trail_rows_;  // those of a pipeline are put together
  const auto [apart, copies, sums] = checks_->combine(trail_rows_, trail_slots_, own_sums_);
  const auto arithmetic =
      static_cast<std::uint32_t>(arithmetic_of(job_, setup_.network.classes(), setup_.device));
  if (directory_) {
    std::vector<TrailRecord> records;
    std::vector<RankSums> of_ranks;
    auto row = trail_rows_.begin();
    for (std::size_t i = 0; i < apart.size(); ++i, row += static_cast<std::ptrdiff_t>(trail_slots_)) {
      const auto steps_behind = static_cast<std::int64_t>(apart.size() - 1 - i);
      records.push_back({.step = state_.step - steps_behind,
                         .arithmetic = arithmetic,
                         .apart = apart[i],
                         .fingerprints = {row, row + static_cast<std::ptrdiff_t>(trail_slots_)}});
      if (sums.size() == apart.size())
        of_ranks.push_back({.step = records.back().step, .copies = copies[i], .sums = sums[i]});
    }
    directory_->write_trail(records, of_ranks);
  }
  trail_rows_.clear();
  own_sums_.clear();
  std::int64_t wrong =
      std::ranges::find_if(apart, [](std::uint64_t all) { return all != 0; }) - apart.begin();
  broadcast(comm_, wrong);
  if (wrong == std::ssize(apart)) return;
  const auto row = own_rows.begin() + wrong * static_cast<std::ptrdiff_t>(trail_slots_);
  checks_->compare_rows({row, row + static_cast<std::ptrdiff_t>(trail_slots_)},
                        state_.step - (std::ssize(apart) - 1 - wrong));
}

}  // namespace lockstep
