// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `data`: every rank has the whole network and a share of each batch, and gradients are summed.
#pragma once

#include "trainer/engine/job_setup.hpp"
#include "trainer/strategies/strategy.hpp"

#include <memory>

namespace lockstep {

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
  void change_own_weights(const std::function<void(std::span<float>)>& change) override;
  void change_own_optimizer(const std::function<void(std::span<float>)>& change) override;
  void change_own_sums(const std::function<void(std::span<std::int64_t>)>& change) override;
  void change_own_sample(std::int64_t steps_taken,
                         const std::function<void(std::span<std::byte>)>& change) override;

  const WeightUpdate& weight_update() const override { return engine_->weight_update(); }
  const DistributedSampler& sampler() const override { return engine_->sampler(); }
  StrategyDescription describe() const override;

 private:
  const JobSetup& setup_;
  Communicator& comm_;
  std::unique_ptr<StepEngine> engine_;
};

std::unique_ptr<ParallelStrategy> make_data_parallel(const Job& job, const JobSetup& setup,
                                                     Communicator& comm);

}  // namespace lockstep
