// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An engine for each rank; what is rank 0's is broadcast, and replicas are compared.
#include "common/error.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/strategies/hogwild.hpp"
#include "trainer/strategies/pipeline.hpp"
#include "trainer/strategies/pipeline_setup.hpp"
#include "trainer/strategies/strategy.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

namespace lockstep {

// The strategy `data`: every rank has the whole network and a share of each batch, and gradients are summed.

class DataParallel final : public ParallelStrategy {
 public:
  DataParallel(const Job& job, const JobSetup& setup, Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t longest_series() const override { return engine_->longest_series(); }
  Evaluation evaluate(const LeaveEvaluation& leave) override { return engine_->evaluate(leave); }

  TrainedState whole_state() override;
  void distribute() override;
  void collect() override;
  void check_copies(std::int64_t step) override;
  std::vector<std::uint64_t> combine_fingerprints(std::span<std::uint64_t> rows, std::size_t slots) override;
  void probe_next_step(const StepProbe& probe) override;

  const WeightUpdate& weight_update() const override { return engine_->weight_update(); }
  const DistributedSampler& sampler() const override { return engine_->sampler(); }
  StrategyDescription describe() const override;

 private:
  const JobSetup& setup_;
  Communicator& comm_;
  std::unique_ptr<StepEngine> engine_;
};

DataParallel::DataParallel(const Job& job, const JobSetup& setup, Communicator& comm)
    : setup_(setup), comm_(comm), engine_(make_step_engine(job, setup, comm)) {}

StepSeries DataParallel::run(const StepPosition& position, std::int64_t count, bool stop_requested) {
  return engine_->run(position, count, stop_requested);
}

TrainedState DataParallel::whole_state() {
  return {engine_->weights(), engine_->optimizer_buffers(), engine_->gradient_units()};
}

void DataParallel::distribute() {
  comm_.broadcast(std::as_writable_bytes(engine_->weights()), 0);
  for (const OptimizerBufferView& buffer : engine_->optimizer_buffers())
    comm_.broadcast(std::as_writable_bytes(buffer.values), 0);
  broadcast_units(comm_, engine_->gradient_units());
  engine_->commit_state();
}

void DataParallel::collect() {
  if (comm_.rank() == 0) engine_->fetch_state();
}

void DataParallel::check_copies(std::int64_t step) {
  const InPhase phase(comm_.activity(), Phase::kChecking);
  engine_->fetch_state();
  expect_equal_replicas(comm_, setup_.network.parameters(), engine_->weights(), step);
}

void DataParallel::probe_next_step(const StepProbe& probe) {
  if (probe.sums) engine_->probe_next_sums(probe.sums);
  if (!probe.state) return;
  engine_->fetch_state();
  probe.state(whole_state());
  engine_->commit_state();
}

std::vector<std::uint64_t> DataParallel::combine_fingerprints(std::span<std::uint64_t> rows,
                                                              std::size_t slots) {
  std::vector<std::int64_t> sums;
  for (std::size_t i = 0; i < rows.size(); i += slots)
    sums.push_back(static_cast<std::int64_t>(whole_fingerprint(rows.subspan(i, slots))));
  comm_.all_reduce(std::span(sums));
  return apart_from_first(rows, slots, sums, comm_.size());
}

StrategyDescription DataParallel::describe() const {
  const bool alone = comm_.size() == 1;
  const std::string buckets = alone ? "none, one rank" : setup_.plan.describe();
  return {.sums = "buckets: " + buckets,
          .lines = {},
          .facts = {{"buckets", buckets}},
          .for_log = alone ? "" : setup_.plan.forecast()};
}

// The catalogue.

namespace {

template <class Strategy>
std::unique_ptr<ParallelStrategy> make(const Job& job, const JobSetup& setup, Communicator& comm) {
  return std::make_unique<Strategy>(job, setup, comm);
}

const std::array kStrategies{
    StrategyEntry{"data", kDataParallelSetup, make<DataParallel>},
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
