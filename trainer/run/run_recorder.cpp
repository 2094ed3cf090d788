// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How a run is saved: a state once, and a run ends only with its last state on disk.
#include "trainer/run/run_recorder.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace lockstep {

namespace {

int evaluations_of(const RunState& state) {
  return int{state.test_accuracy.has_value()} + int{state.validation_accuracy.has_value()};
}

}  // namespace

RunRecorder::RunRecorder(RunContext& run)
    : run_(run),
      trail_slots_(keeps_trail(run.job)
                       ? trail_head(run.job, run.setup, run.strategy->weight_update().buffer_names()).slots()
                       : 0) {}

void RunRecorder::note_saved() {
  saved_step_ = run_.state.step;
  saved_evaluations_ = evaluations_of(run_.state);
}

bool RunRecorder::is_saved() const {
  return saved_step_ == run_.state.step && saved_evaluations_ == evaluations_of(run_.state);
}

bool RunRecorder::is_best() const {
  if (!run_.job.run.keep.best) return false;
  const Evaluation& judged = run_.evaluations.judged();
  bool best = run_.files && run_.files->would_be_best(
                                {judged.accuracy(), run_.evaluations.validation ? -1 : judged.samples});
  broadcast(run_.comm, best);
  return best;
}

/// Searches for NaN and infinity where weights are read anyway, not in every update: the next losses show
/// those. Weights whose losses do not show it must not be evaluated, saved or hashed.
void RunRecorder::check_state() {
  compare_copies();
  const std::int64_t step = run_.state.step;
  if (step == finite_step_) return;
  const InPhase phase(run_.comm.activity(), Phase::kChecking);
  run_.strategy->collect();
  agree(run_.comm, [&] {
    if (run_.comm.rank() != 0) return;
    const std::string wrong = unusable_weights(described(run_.setup.network.parameters().tensors()),
                                               run_.strategy->whole_state().weights);
    if (wrong.empty()) return;
    throw InternalError(
        fmt::format("after step {}: {}. Try this: lower train.optimizer.lr or train.optimizer.weight_decay. "
                    "Nothing of this step was saved",
                    step, wrong));
  });
  finite_step_ = step;
}

void RunRecorder::save() {
  if (is_saved()) return;
  const TimeSpan span(run_.comm.activity().timeline(), Work::kCheckpoint);
  check_state();
  wait_for_disk();  // completes the save before
  if (run_.files)
    run_.files->save(
        checkpoint_of(run_.state, run_.job, run_.setup, run_.comm, run_.strategy->whole_state()));
  note_saved();
}

/// Reports to other ranks every second, so that a slow disk is not taken for a lost rank.
void RunRecorder::wait_for_disk() {
  const auto pulse = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<std::chrono::duration<double>>(std::chrono::seconds(1), run_.comm.timeout() / 4));
  for (char saved = 0; saved == 0;) {
    saved = run_.files && run_.files->finished_within(pulse) ? 1 : 0;
    broadcast(run_.comm, saved);
  }
}

void RunRecorder::save_at_end(const char* what_ends) {
  if (is_saved()) compare_copies();
  save();
  const InPhase phase(run_.comm.activity(), Phase::kSaving);
  wait_for_disk();
  agree(run_.comm, [&] {
    if (!run_.files) return;
    try {
      run_.files->finish();
    } catch (const IoError& error) {
      throw IoError(fmt::format(
          "{} at step {}, but that step is not saved: {}; {} resumes from the newest checkpoint in {}, if "
          "there is one",
          what_ends, with_thousands(run_.state.step), error.what(), way_to_go_on(run_.job),
          run_.job.run.dir));
    }
  });
}

// The trail: rows of all ranks are put together every so many steps, and become records.

void RunRecorder::add(const StepSeries& series) {
  constexpr std::size_t kMostSteps = 64;  // between two times
  if (trail_slots_ == 0) return;
  LOCKSTEP_CHECK(series.fingerprints.size() == static_cast<std::size_t>(series.steps) * trail_slots_);
  trail_rows_.insert(trail_rows_.end(), series.fingerprints.begin(), series.fingerprints.end());
  own_sums_.insert(own_sums_.end(), series.own_sums.begin(), series.own_sums.end());
  if (trail_rows_.size() >= kMostSteps * trail_slots_) flush_trail();
}

void RunRecorder::compare_copies() {
  const InPhase phase(run_.comm.activity(), Phase::kChecking);
  flush_trail();
  run_.checks->compare_copies(run_.state.step);
}

/// Rows that differ between ranks are written, too, before the run ends: proofs read them.
void RunRecorder::flush_trail() {
  if (trail_rows_.empty()) return;
  const auto own_rows = trail_rows_;  // those of a pipeline are put together
  const auto [apart, copies, sums] = run_.checks->combine(trail_rows_, trail_slots_, own_sums_);
  const auto arithmetic =
      static_cast<std::uint32_t>(arithmetic_of(run_.job, run_.setup.network.classes(), run_.setup.device));
  if (run_.files) {
    std::vector<TrailRecord> records;
    std::vector<RankSums> of_ranks;
    auto row = trail_rows_.begin();
    for (std::size_t i = 0; i < apart.size(); ++i, row += static_cast<std::ptrdiff_t>(trail_slots_)) {
      const auto steps_behind = static_cast<std::int64_t>(apart.size() - 1 - i);
      records.push_back({.step = run_.state.step - steps_behind,
                         .arithmetic = arithmetic,
                         .apart = apart[i],
                         .fingerprints = {row, row + static_cast<std::ptrdiff_t>(trail_slots_)}});
      if (sums.size() == apart.size())
        of_ranks.push_back({.step = records.back().step, .copies = copies[i], .sums = sums[i]});
    }
    run_.files->write_trail(records, of_ranks);
  }
  trail_rows_.clear();
  own_sums_.clear();
  std::int64_t wrong =
      std::ranges::find_if(apart, [](std::uint64_t all) { return all != 0; }) - apart.begin();
  broadcast(run_.comm, wrong);
  if (wrong == std::ssize(apart)) return;
  const auto row = own_rows.begin() + wrong * static_cast<std::ptrdiff_t>(trail_slots_);
  run_.checks->compare_rows({row, row + static_cast<std::ptrdiff_t>(trail_slots_)},
                            run_.state.step - (std::ssize(apart) - 1 - wrong));
}

}  // namespace lockstep
