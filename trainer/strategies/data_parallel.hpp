// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `data`: every rank has the whole network and a share of each batch, and gradients are summed while
/// backward runs. On CPU cores (cpu_data_parallel.cpp) or on a GPU (device_data_parallel.cpp).
#pragma once

#include "comm/communicator.hpp"
#include "data/sampler.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/strategies/strategy.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

/// What is the same on both: what is rank 0's is broadcast, and replicas are compared.
class DataParallel : public ParallelStrategy {
 public:
  void distribute() final;
  void collect() final;
  void exchange_weights(const std::string& average) final;
  void check_copies(std::int64_t step) final;
  std::vector<std::uint64_t> combine_fingerprints(std::span<std::uint64_t> rows, std::size_t slots) final;
  void probe_next_step(const StepProbe& probe) final;
  const DistributedSampler& sampler() const final { return sampler_; }
  StrategyDescription describe() const final;

 protected:
  DataParallel(const Job& job, const JobSetup& setup, Communicator& comm)
      : setup_(setup), comm_(comm), sampler_(sampler_options(job, setup.data->train, comm)) {}

  /// Brings the state from where it is trained into whole_state(), and back after a change there; the latter without
  /// the units, or with them. Nothing to do on a CPU.
  virtual void fetch_state() {}
  virtual void put_weights() {}
  virtual void commit_state() {}
  virtual void probe_next_sums(const GradientReducer::SeeSums& see) = 0;

  const JobSetup& setup_;
  Communicator& comm_;
  DistributedSampler sampler_;
};

/// On the setup's device. Borrows all references.
std::unique_ptr<ParallelStrategy> make_data_parallel(const Job& job, const JobSetup& setup,
                                                     Communicator& comm);
std::unique_ptr<ParallelStrategy> make_cpu_data_parallel(const Job& job, const JobSetup& setup,
                                                         Communicator& comm);
std::unique_ptr<ParallelStrategy> make_device_data_parallel(const Job& job, const JobSetup& setup,
                                                            Communicator& comm);

}  // namespace lockstep
