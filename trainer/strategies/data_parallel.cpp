// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DataParallel: what is rank 0's is broadcast, and replicas are compared. And the catalogue of strategies.
#include "trainer/strategies/data_parallel.hpp"

#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/engine/replay.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/strategies/hogwild.hpp"
#include "trainer/strategies/pipeline.hpp"
#include "trainer/strategies/strategy.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

namespace lockstep {

StepSeries DataParallel::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  try {
    StepSeries series = run_steps(position, count, stop_requested);
    series.passed = std::exchange(passed_, {});
    return series;
  } catch (const SumsDifferError& error) {
    name_wrong_sums(error, position.global_step + steps_taken() + 1);
  }
}

void DataParallel::name_wrong_sums(const SumsDifferError& error, std::int64_t step) {
  throw_wrong_sums(comm_, error, step, {setup_.network.parameters(), setup_.device.description});
}

StepSums DataParallel::reduce_until_right(const StepPosition& position,
                                          const std::function<StepSums()>& reduce) {
  if (!goes_on_when_wrong_) return reduce();
  while (true) {
    try {
      try {
        return reduce();
      } catch (const SumsDifferError& error) {
        name_wrong_sums(error, position.global_step + 1);
      }
    } catch (const WrongRankError& error) {
      if (!may_have_passed(error.numbers())) throw;
      passed_.emplace_back(error.numbers().step, error.numbers().what);
    }
  }
}

/// A rank that errs again and again is at its end.
bool DataParallel::may_have_passed(const WrongNumbers& wrong) {
  constexpr int kMostTimes = 3;
  std::vector<int> ranks = wrong.ranks;
  if (ranks.empty()) ranks.push_back(-1);
  bool may = wrong.may_pass;
  for (const int rank : ranks) may = ++times_wrong_[rank] <= kMostTimes && may;
  return may;
}

bool DataParallel::weigh_shares(const std::vector<std::vector<Grain>>& shares) {
  std::int64_t unable = prepare_shares() ? 0 : 1;
  comm_.all_reduce(std::span(&unable, 1));
  if (unable == 0) weighed_shares_ = shares;
  return unable == 0;
}

/// Ranks take turns.
void DataParallel::compute_weighed_shares(const StepPosition& position) {
  std::int64_t sum = 0;
  for (int rank = comm_.rank(); rank < std::ssize(weighed_shares_); rank += comm_.size()) {
    const auto& grains = weighed_shares_[static_cast<std::size_t>(rank)];
    sum += static_cast<std::int64_t>(rank_weight(rank) * whole(compute_share(position, grains)));
  }
  comm_.all_reduce(std::span(&sum, 1));
  weighted_shares_ = static_cast<std::uint64_t>(sum);
}

void DataParallel::replay(const StepPosition& position, const SumFingerprints& own) {
  const auto share = [&](int rank) {
    return compute_share(position, sampler_.grains_of(rank, position.step_in_epoch));
  };
  const ReplayWork work{.compute_share = share,
                        .weights = [&] { return fingerprints_of_weights(); },
                        .samples = [&](int rank) { return fingerprint_of_samples(position, rank); }};
  replay_next_rank(comm_, own, work, position.global_step + 1,
                   {setup_.network.parameters(), setup_.device.description});
}

SumFingerprints DataParallel::fingerprints_of_weights() {
  fetch_state();
  const TrainedState state = whole_state();
  SumFingerprints fingerprints;
  for (const Parameter& tensor : setup_.network.parameters().parameters)
    fingerprints.push_back(
        cpu::fingerprint(kWeightsBuffer, tensor.offset,
                         std::span<const float>(state.weights).subspan(tensor.offset, tensor.size)));
  return fingerprints;
}

/// Of pictures and labels, in the order of the share.
std::uint64_t DataParallel::fingerprint_of_samples(const StepPosition& position, int rank) const {
  const Dataset& data = setup_.data->train;
  const auto size = static_cast<std::size_t>(data.shape.features());
  std::uint64_t fingerprint = 0;
  const auto add = [&fingerprint](const auto& numbers) {
    for (const std::byte byte : std::as_bytes(numbers))
      fingerprint = mix_bits(fingerprint ^ static_cast<std::uint64_t>(byte));
  };
  for (const Grain& grain : sampler_.grains_of(rank, position.step_in_epoch)) {
    for (const std::int32_t index : sampler_.indices(position.step_in_epoch, grain)) {
      const auto sample = static_cast<std::size_t>(index);
      if (data.images.size() > 0) add(data.images.span().subspan(sample * size, size));
      if (data.features.size() > 0) add(data.features.span().subspan(sample * size, size));
      if (data.rows != nullptr) add(FeatureRows(data, std::span(&index, 1))[0]);
      add(std::span(&data.labels[sample], 1));
    }
  }
  return fingerprint;
}

void DataParallel::distribute() {
  const TrainedState state = whole_state();
  comm_.broadcast(std::as_writable_bytes(state.weights), 0);
  for (const OptimizerBufferView& buffer : state.optimizer)
    comm_.broadcast(std::as_writable_bytes(buffer.values), 0);
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
  const InPhase phase(comm_.activity(), Phase::kChecking);
  fetch_state();
  expect_equal_replicas(comm_, setup_.network.parameters(), whole_state().weights, step);
}

void DataParallel::probe_next_step(const StepProbe& probe) {
  if (probe.sums) probe_next_sums(probe.sums);
  if (probe.outputs) probe_next_outputs(probe.outputs);
  if (probe.reduction.leaving || probe.reduction.arrived) {
    if (comm_.size() == 1) throw ConfigError("inject.what: one rank alone sends no sums; use more ranks");
    probe_next_reduction(probe.reduction);
  }
  if (!probe.state) return;
  fetch_state();
  probe.state(whole_state());
  commit_state();
}

/// One all-reduce of two or three numbers a step.
CombinedFingerprints DataParallel::combine_fingerprints(std::span<std::uint64_t> rows, std::size_t slots,
                                                        std::span<const std::uint64_t> own_sums) {
  const std::size_t steps = rows.size() / slots;
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < steps; ++i)
    numbers.push_back(whole_fingerprint(rows.subspan(i * slots, slots)));
  for (std::size_t i = 0; i < steps; ++i) numbers.push_back(rank_weight(comm_.rank()) * numbers[i]);
  for (const std::uint64_t own : own_sums) numbers.push_back(rank_weight(comm_.rank()) * own);
  std::vector<std::int64_t> sums(numbers.begin(), numbers.end());
  comm_.all_reduce(std::span(sums));
  const auto copies = sums.begin() + static_cast<std::ptrdiff_t>(steps);
  const auto of_own = copies + static_cast<std::ptrdiff_t>(steps);
  return {.apart = apart_from_first(rows, slots, std::span(sums).first(steps), comm_.size()),
          .weighted_copies = {copies, of_own},
          .weighted_sums = {of_own, sums.end()}};
}

StrategyDescription DataParallel::describe() const {
  const bool alone = comm_.size() == 1;
  const std::string buckets = alone ? "none, one rank" : setup_.plan.describe();
  return {.sums = alone ? "buckets: " + buckets : buckets,
          .lines = {},
          .facts = {{"buckets", buckets}},
          .for_log = alone ? "" : setup_.plan.forecast()};
}

std::unique_ptr<ParallelStrategy> make_data_parallel(const Job& job, const JobSetup& setup,
                                                     Communicator& comm) {
  return (setup.device.gpu ? make_device_data_parallel : make_cpu_data_parallel)(job, setup, comm);
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

// The catalogue.

namespace {

template <class Strategy>
std::unique_ptr<ParallelStrategy> make(const Job& job, const JobSetup& setup, Communicator& comm) {
  return std::make_unique<Strategy>(job, setup, comm);
}

const std::array kStrategies{
    StrategyEntry{"data", kDataParallelSetup, make_data_parallel},
    StrategyEntry{"pipeline", kPipelineSetup, make<Pipeline>},
    StrategyEntry{"hogwild", kHogwildSetup, make<Hogwild>},
};

}  // namespace

const StrategyEntry& find_strategy(const Job& job) {
  const auto found = std::ranges::find(kStrategies, job.parallel.strategy, &StrategyEntry::name);
  LOCKSTEP_CHECK(found != kStrategies.end());
  return *found;
}

}  // namespace lockstep
