// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An engine for each rank; what is rank 0's is broadcast, and replicas are compared.
#include "trainer/strategies/data/data_parallel.hpp"

#include "trainer/ranks/replicas.hpp"
#include "trainer/strategies/broadcast_units.hpp"

#include <span>

namespace lockstep {

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

void DataParallel::change_own_weights(const std::function<void(std::span<float>)>& change) {
  engine_->fetch_state();
  change(engine_->weights());
  engine_->commit_state();
}

StrategyDescription DataParallel::describe() const {
  const std::string buckets = comm_.size() == 1 ? "none, one rank" : setup_.plan.describe();
  return {.sums = "buckets: " + buckets, .lines = {}, .facts = {{"buckets", buckets}}};
}

std::unique_ptr<ParallelStrategy> make_data_parallel(const Job& job, const JobSetup& setup,
                                                     Communicator& comm) {
  return std::make_unique<DataParallel>(job, setup, comm);
}

}  // namespace lockstep
