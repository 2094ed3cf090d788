// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DataParallel: what is rank 0's is broadcast, and replicas are compared.
#include "trainer/training/data_parallel.hpp"

#include "common/error.hpp"
#include "models/batch_layer.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

StepSeries DataParallel::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  try {
    return run_steps(position, count, stop_requested);
  } catch (const SumsDifferError& error) {
    name_wrong_sums(error, position.global_step + steps_taken() + 1);
  }
}

void DataParallel::name_wrong_sums(const SumsDifferError& error, std::int64_t step) {
  throw_wrong_sums(comm_, error, step, {setup_.network.parameters(), setup_.processor});
}

bool DataParallel::weigh_shares(const std::vector<std::vector<Grain>>& shares) {
  std::size_t most_grains = 0;
  for (const auto& grains : shares) most_grains = std::max(most_grains, grains.size());
  std::int64_t unable = prepare_shares(most_grains) ? 0 : 1;
  comm_.all_reduce(std::span(&unable, 1));
  if (unable == 0) weighed_shares_ = shares;
  return unable == 0;
}

/// Ranks take turns.
void DataParallel::compute_weighed_shares(const StepPosition& position) {
  std::int64_t sum = 0;
  for (int rank = comm_.rank(); rank < std::ssize(weighed_shares_); rank += comm_.size()) {
    const auto& grains = at(weighed_shares_, rank);
    const SumFingerprints parts = compute_share(position, grains);
    const auto gradients = std::span(parts).last(setup_.network.parameters().parameters.size());
    sum += static_cast<std::int64_t>(rank_weight(rank) * whole_fingerprint(gradients));
  }
  comm_.all_reduce(std::span(&sum, 1));
  weighted_shares_ = static_cast<std::uint64_t>(sum);
}

std::vector<ReplayedPart> DataParallel::share_parts() const {
  std::vector<ReplayedPart> parts;
  const auto& layers = setup_.network.layers();
  const std::vector<Cut> cuts = cuts_of(setup_.network), backward = backward_cuts_of(setup_.network);
  for (const Cut& cut : cuts)
    parts.push_back({fmt::format("the sums of layer {} over the batch", layers[cut.layer]->name())});
  for (std::size_t i = backward.size(); i-- > 0;)
    parts.push_back(
        {fmt::format("the sums of layer {} over the batch, in backward", layers[backward[i].layer]->name())});
  for (const Parameter& tensor : setup_.network.parameters().parameters)
    parts.push_back({"the gradients of " + tensor.name});
  return parts;
}

void DataParallel::replay(const StepPosition& position, const SumFingerprints& own) {
  const ReplayWork work{
      .share_parts = share_parts(),
      .state_parts = state_parts(),
      .sample_parts = {{"pictures"}, {"labels"}},
      .compute_share =
          [&](int rank) { return compute_share(position, sampler_.grains_of(rank, position.step_in_epoch)); },
      .state = [&] { return state_fingerprints(); },
      .samples =
          [&](int rank) {
            return fingerprints_of_samples(setup_.data->train, sampler_, position.step_in_epoch, rank);
          }};
  replay_next_share(comm_, comm_, own, work, position.global_step + 1, setup_.processor);
}

SumFingerprints DataParallel::state_fingerprints() {
  fetch_state();
  const TrainedState state = whole_state();
  const ParameterLayout& network = setup_.network.parameters();
  return fingerprints_of_state(fingerprint_layout(network, state.optimizer.size()),
                               lockstep::held_tensors(network), state);
}

void DataParallel::distribute() {
  const TrainedState state = whole_state();
  broadcast(comm_, state.weights);
  for (const OptimizerBufferView& buffer : state.optimizer) broadcast(comm_, buffer.values);
  broadcast_units(comm_, state.units);
  commit_state();
}

void DataParallel::collect() {
  if (comm_.rank() == 0) fetch_state();
}

/// By way of the host's copy, where the weights are on a device.
void DataParallel::exchange_weights(const std::string& average) {
  fetch_state();
  exchange(whole_state(), average);
  put_weights();
}

void DataParallel::check_copies(std::int64_t step) {
  if (comm_.size() > 1) check_rows(state_fingerprints(), step);
}

void DataParallel::check_rows(const std::vector<std::uint64_t>& row, std::int64_t step) {
  expect_equal_copies({comm_, comm_, state_parts(), setup_.processor}, row, step);
}

void DataParallel::probe_next_step(const StepProbe& probe) {
  if (probe.message)
    throw ConfigError("inject.what: there are no messages between stages; use parallel.strategy=pipeline");
  if ((probe.reduction.leaving || probe.reduction.arrived) && comm_.size() == 1)
    throw ConfigError("inject.what: one rank alone sends no sums; use more ranks");
  probe_parts(probe);
  if (!probe.state) return;
  fetch_state();
  probe.state(whole_state());
  commit_state();
}

CombinedFingerprints DataParallel::combine_fingerprints(std::span<std::uint64_t> rows, std::size_t slots,
                                                        std::span<const std::uint64_t> own_sums) {
  return combine_rows(comm_, rows, slots, own_sums, comm_.size());
}

StrategyDescription DataParallel::describe() const {
  const bool alone = comm_.size() == 1;
  const std::string buckets = alone ? "none, one rank" : setup_.plan.describe();
  return {.sums = alone ? "buckets: " + buckets : buckets,
          .facts = {{"buckets", buckets}},
          .for_log = alone ? "" : setup_.plan.forecast()};
}

bool evaluate_averages(ParallelStrategy& strategy, std::int64_t steps, EvaluatedPart part,
                       const LeaveEvaluation& leave, Evaluations& found) {
  const WeightAverages& averages = strategy.weight_update().averages();
  for (std::size_t i = 0; i < averages.count(); ++i) {
    if (!averages.exists(i, steps)) continue;
    const std::string& name = averages.names()[i];
    strategy.exchange_weights(name);
    const Evaluation evaluation = strategy.evaluate(part, leave);
    strategy.exchange_weights(name);
    if (evaluation.interrupted) return false;
    found.averages.push_back({name, part, evaluation});
  }
  return true;
}

}  // namespace lockstep
