// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// TrailRecorder: rows of all ranks are combined every so many steps and become records.
#include "trainer/run/trail_recorder.hpp"

#include "common/error.hpp"
#include "trainer/config/resume_keys.hpp"
#include "trainer/config/trail_choice.hpp"
#include "trainer/run/saved_model.hpp"

#include <span>

namespace lockstep {
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
