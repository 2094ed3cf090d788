// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DataParallel: what is rank 0's is broadcast.
#include "trainer/training/data_parallel.hpp"

#include "common/error.hpp"
#include "common/spelling.hpp"
#include "models/batch_layer.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

/// Each rank is a team.
Teams teams_of(const Network& network, Communicator& comm) {
  Teams teams{.peers = &comm, .held = held_tensors(network.parameters())};
  const auto& layers = network.layers();
  const std::vector<Cut> cuts = cuts_of(network), backward = backward_cuts_of(network);
  for (const Cut& cut : cuts)
    teams.share_parts.push_back(
        {fmt::format("the sums of layer {} over the batch", layers[cut.layer]->name())});
  for (std::size_t i = backward.size(); i-- > 0;)
    teams.share_parts.push_back(
        {fmt::format("the sums of layer {} over the batch, in backward", layers[backward[i].layer]->name())});
  for (const Parameter& tensor : network.parameters().parameters)
    teams.share_parts.push_back({"the gradients of " + tensor.name});
  return teams;
}

}  // namespace

DataParallel::DataParallel(const TrainingSetup& setup, Communicator& comm, std::int64_t longest_series)
    : ParallelStrategy(setup.options, setup.network.parameters(), sampler_options(setup, comm),
                       longest_series),
      setup_(setup),
      comm_(comm) {
  teams_ = teams_of(setup.network, comm);
}

StepSeries DataParallel::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  try {
    return run_steps(position, count, stop_requested);
  } catch (const SumsDifferError& error) {
    observers_.sums_differ(error, position.global_step + steps_taken() + 1);
    throw;
  }
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

void DataParallel::visit_own_state(const StateVisit& visit) {
  fetch_state();
  if (visit(whole_state())) put_weights();
}

void DataParallel::require_sight(Sight part) const {
  if (part == Sight::kMessages)
    throw ConfigError("inject.what: there are no messages between stages; use parallel.strategy=pipeline");
  if (part == Sight::kSumsOnTheirWay && comm_.size() == 1)
    throw ConfigError("inject.what: one rank alone sends no sums; use more ranks");
}

StrategyDescription DataParallel::describe() const {
  const bool alone = comm_.size() == 1;
  const std::string buckets = alone ? "none, one rank" : setup_.plan.describe();
  return {.sums = alone ? "buckets: " + buckets : buckets,
          .facts = {{"buckets", buckets}},
          .for_log = alone ? "" : setup_.plan.forecast()};
}

/// Tensors kept beside the parameters stay.
void exchange_weights(ParallelStrategy& strategy, const std::string& average) {
  strategy.visit_own_state([&average](const TrainedState& own) {
    if (own.weights.empty()) return true;
    const auto& found = entry_of(own.optimizer, average, &OptimizerBufferView::name);
    std::ranges::swap_ranges(found.values, own.weights.first(found.values.size()));
    return true;
  });
}

bool evaluate_averages(ParallelStrategy& strategy, std::int64_t steps, EvaluatedPart part,
                       const LeaveEvaluation& leave, Evaluations& found) {
  const WeightAverages& averages = strategy.weight_update().averages();
  for (std::size_t i = 0; i < averages.count(); ++i) {
    if (!averages.exists(i, steps)) continue;
    const std::string& name = averages.names()[i];
    exchange_weights(strategy, name);
    const Evaluation evaluation = strategy.evaluate(part, leave);
    exchange_weights(strategy, name);
    if (evaluation.interrupted) return false;
    found.averages.push_back({name, part, evaluation});
  }
  return true;
}

}  // namespace lockstep
