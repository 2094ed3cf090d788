// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RunState: sums of an epoch's losses, and what a checkpoint holds of it.
#include "trainer/run/run_state.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/saved_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

/// Starts the count of patience at a checkpoint that has none. The evaluation of its own step may still be to come.
CheckpointPatience counted_from_here(const CheckpointFacts& facts, EvaluatedPart judge) {
  return {.counted_from = accuracy_on(judge, facts) ? facts.step : std::max<std::int64_t>(facts.step - 1, 0)};
}

std::string text_of_names(const auto& buffers) {
  std::vector<std::string> names;
  for (const auto& buffer : buffers) names.push_back(buffer.name);
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

void restore_optimizer(const CheckpointState& checkpoint, const std::vector<OptimizerBufferView>& buffers) {
  const std::string stored = text_of_names(checkpoint.optimizer), wanted = text_of_names(buffers);
  if (stored != wanted)
    throw DataError(fmt::format(
        "the checkpoint of step {} holds of its optimiser: {}; the job's optimiser remembers: {}; "
        "start afresh with run.resume=never or another run.dir",
        checkpoint.facts.step, stored, wanted));
  for (std::size_t i = 0; i < buffers.size(); ++i)
    std::ranges::copy(checkpoint.optimizer[i].values, buffers[i].values.begin());
}

}  // namespace

/// Refuses a position that is not one of this job on these data. Training would go on from it, past the end
/// of an epoch for instance, and then for ever.
void require_possible_position(const CheckpointFacts& facts, const DistributedSampler& sampler) {
  const std::int64_t steps = sampler.steps_per_epoch(), batch = sampler.batch_samples(0);
  const std::int64_t last_batch = sampler.batch_samples(steps - 1);
  const auto samples_after = [&](std::int64_t taken) {
    return taken < steps ? taken * batch : (steps - 1) * batch + last_batch;
  };
  // All steps of an epoch may be taken and its evaluation still to come.
  const bool in_epoch = facts.step_in_epoch >= 0 && facts.step_in_epoch <= steps;
  const LossWindow unprinted = facts.unprinted.value_or(LossWindow());
  const std::int64_t of_whole_epochs = facts.step - facts.step_in_epoch;
  const bool possible =
      in_epoch && of_whole_epochs >= 0 && of_whole_epochs % steps == 0 &&
      of_whole_epochs / steps == facts.epoch && facts.epoch_samples == samples_after(facts.step_in_epoch) &&
      facts.epoch_correct >= 0 && facts.epoch_correct <= facts.epoch_samples &&
      std::isfinite(facts.epoch_loss_sum) && unprinted.steps <= facts.step_in_epoch &&
      unprinted.samples <= facts.epoch_samples && facts.unlogged.steps <= facts.step_in_epoch &&
      facts.unlogged.samples <= facts.epoch_samples && facts.unlogged.correct <= facts.epoch_correct;
  if (possible) return;
  throw DataError(
      fmt::format("the checkpoint of step {} is after {}, {} and {}, where a run with {} an epoch in batches "
                  "of {} cannot be: "
                  "the data set has changed its size, or the manifest is damaged; bring the data back as "
                  "they were, or start "
                  "afresh with run.resume=never or another run.dir",
                  facts.step, counted(facts.epoch, "epoch"), counted(facts.step_in_epoch, "step"),
                  counted(facts.epoch_samples, "sample"), counted(steps, "step"), batch));
}

std::int64_t steps_asked(const Job& job, std::int64_t steps_per_epoch) {
  const std::int64_t all = job.train.epochs * steps_per_epoch;
  return job.train.max_steps > 0 ? std::min(all, job.train.max_steps) : all;
}

std::int64_t log_spacing(const Job& job, std::int64_t steps_taken) {
  if (job.run.log_every_steps != RunSection::kAutoLogs) return job.run.log_every_steps;
  for (const std::int64_t spacing : {1, 2, 5, 10, 20, 50})
    if (steps_taken < 100 * spacing) return spacing;
  return 100;
}

namespace {

/// Reads the background of the data; a failing disk must not keep trained weights from being saved.
bool light_background(const Job& job, const JobSetup& setup) {
  if (!setup.light_background.valid()) return has_light_background(job, setup.data->train);
  return or_if_unreadable([&] { return setup.light_background.get(); }, false);
}

}  // namespace

CheckpointFacts checkpoint_facts(const RunState& state, const Job& job, const JobSetup& setup,
                                 const Communicator& comm, const GradientUnits& units) {
  CheckpointFacts facts;
  static_cast<RunState&>(facts) = state;
  facts.seed = job.train.seed;
  facts.epoch_loss_sum = state.epoch_loss();
  facts.gradient_units = {{units.exponents().begin(), units.exponents().end()}, units.changed_at()};
  facts.arithmetic.version = static_cast<std::int64_t>(arithmetic_of(job, setup.network.classes()));
  if (job.run.print_loss_every_steps == 0) facts.unprinted.reset();
  if (job.run.log_every_steps == 0) facts.unlogged = {};
  if (job.train.patience == 0) facts.patience.reset();
  facts.job = determining_keys(job);
  facts.model = describe_model(job, setup);
  facts.data = describe_data(job, *setup.data, setup.fingerprints->get(), light_background(job, setup));
  facts.world = {{"ranks", std::to_string(comm.size())},
                 {"threads", std::to_string(job.parallel.threads)},
                 {"device", setup.device.description},
                 {"backend", setup.device.backend},
                 {"kernels", std::string(spelt(job.parallel.kernels))}};
  facts.bucket_plan = setup.plan.describe();
  for (const Bucket& bucket : setup.plan.buckets) facts.bucket_sizes.push_back(bucket.size);
  facts.parameters = described(setup.network.parameters().parameters);
  facts.kept = described(setup.network.parameters().kept);
  return facts;
}

CheckpointState checkpoint_of(const RunState& state, const Job& job, const JobSetup& setup,
                              const Communicator& comm, const TrainedState& trained) {
  CheckpointState checkpoint{.facts = checkpoint_facts(state, job, setup, comm, trained.units),
                             .weights = {trained.weights.begin(), trained.weights.end()}};
  for (const OptimizerBufferView& buffer : trained.optimizer)
    checkpoint.optimizer.push_back({buffer.name, {buffer.values.begin(), buffer.values.end()}});
  return checkpoint;
}

RunState restore(const CheckpointState& checkpoint, const Job& job, const JobSetup& setup,
                 const DistributedSampler& sampler, const TrainedState& trained) {
  const CheckpointFacts& facts = checkpoint.facts;
  require_same_data(facts, job, *setup.data, setup.fingerprints->get());
  const ParameterLayout& layout = setup.network.parameters();
  if (facts.parameters != described(layout.parameters) || facts.kept != described(layout.kept) ||
      facts.model != describe_model(job, setup))
    throw ConfigError(
        fmt::format("the checkpoint of step {} was written with another version of model '{}'; bring the "
                    "model file back as it was, or use another run.dir",
                    facts.step, job.model));
  require_possible_position(facts, sampler);
  restore_optimizer(checkpoint, trained.optimizer);
  LOCKSTEP_CHECK(checkpoint.weights.size() == trained.weights.size());
  std::copy(checkpoint.weights.begin(), checkpoint.weights.end(), trained.weights.begin());
  trained.units.restore(facts.gradient_units.exponents, facts.gradient_units.changed_at);
  RunState state = facts;
  state.patience = facts.patience.value_or(counted_from_here(facts, judging_part(job)));
  if (facts.arithmetic.version != static_cast<std::int64_t>(arithmetic_of(job, setup.network.classes())))
    state.arithmetic.since = facts.step;
  state.unprinted = facts.unprinted.value_or(LossWindow());  // empty: the next window is printed first
  return state;
}

void restart_patience(RunState& state, const CheckpointFacts& facts, const Job& job, const JobSetup& setup) {
  const std::int64_t then = evaluated_test_samples(facts);
  const bool is_same_set =
      judging_part(job) != EvaluatedPart::kTest || then < 0 || then == setup.data->test.size();
  if (!is_same_set) state.patience = counted_from_here(facts, EvaluatedPart::kTest);
}

TrailHead trail_head(const Job& job, const JobSetup& setup, const std::vector<std::string>& buffers) {
  const ParameterLayout& layout = setup.network.parameters();
  TrailHead head{described(layout.parameters), described(layout.kept), buffers, {}};
  for (const auto& [key, value] : determining_keys(job)) head.facts["job." + key] = value;
  for (const auto& [key, value] : describe_model(job, setup)) head.facts["model." + key] = value;
  const Dataset& train = setup.data->train;
  head.facts["data.train_samples"] = std::to_string(train.size());
  head.facts["data.train_samples_digest"] = train.quick.samples;
  head.facts["data.train_labels_digest"] = train.quick.labels;
  return head;
}

}  // namespace lockstep
