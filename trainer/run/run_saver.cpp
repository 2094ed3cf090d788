// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A state is saved once, and a run ends only with its last state on disk.
#include "trainer/run/run_saver.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/saved_model.hpp"

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

// TrailRecorder: rows of all ranks are combined every so many steps and become records.

namespace {

std::vector<TrailTensor> trail_tensors(const std::vector<Parameter>& parameters) {
  std::vector<TrailTensor> tensors;
  for (const Parameter& parameter : parameters) tensors.push_back({parameter.name, parameter.size});
  return tensors;
}

}  // namespace

TrailHead trail_head(const Job& job, const JobSetup& setup, const std::vector<std::string>& buffers) {
  const ParameterLayout& layout = setup.network.parameters();
  TrailHead head{.trained = trail_tensors(layout.parameters),
                 .kept = trail_tensors(layout.kept),
                 .buffers = buffers,
                 .facts = {}};
  for (const auto& [key, value] : determining_keys(job)) head.facts["job." + key] = value;
  for (const auto& [key, value] : describe_model(job, setup)) head.facts["model." + key] = value;
  const Dataset& train = setup.data->train;
  head.facts["data.train_samples"] = std::to_string(train.size());
  head.facts["data.train_samples_digest"] = train.quick.samples;
  head.facts["data.train_labels_digest"] = train.quick.labels;
  return head;
}

TrailRecorder::TrailRecorder(const Job& job, const JobSetup& setup, ParallelStrategy& strategy)
    : job_(job),
      setup_(setup),
      strategy_(strategy),
      slots_(keeps_trail(job) ? head().slots() : 0),
      arithmetic_(arithmetic_of(job.parallel, setup.device)) {}

TrailHead TrailRecorder::head() const {
  return trail_head(job_, setup_, strategy_.weight_update().buffer_names());
}

void TrailRecorder::add(const StepSeries& series, std::int64_t steps) {
  if (slots_ == 0) return;
  LOCKSTEP_CHECK(series.fingerprints.size() == static_cast<std::size_t>(series.steps) * slots_);
  rows_.insert(rows_.end(), series.fingerprints.begin(), series.fingerprints.end());
  steps_ = steps;
  if (rows_.size() >= static_cast<std::size_t>(kMostUnwritten) * slots_) flush();
}

void TrailRecorder::flush() {
  if (rows_.empty()) return;
  const auto apart = strategy_.combine_fingerprints(rows_, slots_);
  const auto count = static_cast<std::int64_t>(rows_.size() / slots_);
  if (directory_ != nullptr) {
    std::vector<TrailRecord> records;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto row = std::span<const std::uint64_t>(rows_).subspan(at * slots_, slots_);
      records.push_back({.step = steps_ - count + 1 + i,
                         .arithmetic = static_cast<std::uint32_t>(arithmetic_),
                         .apart = apart[at],
                         .fingerprints = {row.begin(), row.end()}});
    }
    directory_->write_trail(records);
  }
  rows_.clear();
}

}  // namespace lockstep
