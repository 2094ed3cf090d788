// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `data`. Every rank has the whole network and a share of each batch, and gradients are summed while
/// backward runs. On CPU cores (cpu_data_parallel.cpp) or on a GPU
/// (trainer/device/device_data_parallel.cpp).
#pragma once

#include "comm/communicator.hpp"
#include "data/sampler.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/training/wrong_rank.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

/// The part that is alike on both: what is rank 0's is broadcast, and replicas are compared.
class DataParallel : public ParallelStrategy {
 public:
  /// Names the rank whose sums have changed on their way. @throws AgreedError
  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) final;
  void distribute() final;
  void collect() final;
  void exchange_weights(const std::string& average) final;
  void check_copies(std::int64_t step) final;
  void check_rows(const std::vector<std::uint64_t>& row, std::int64_t step) final;
  std::int64_t replays_every() const final { return replay_every_; }
  CombinedFingerprints combine_fingerprints(std::span<std::uint64_t> rows, std::size_t slots,
                                            std::span<const std::uint64_t> own_sums) final;
  bool weigh_shares(const std::vector<std::vector<Grain>>& shares) final;
  std::uint64_t weighted_shares() const final { return weighted_shares_; }
  void probe_next_step(const StepProbe& probe) final;
  const DistributedSampler& sampler() const final { return sampler_; }
  StrategyDescription describe() const final;

 protected:
  DataParallel(const TrainingSetup& setup, Communicator& comm, bool on_gpu)
      : setup_(setup),
        comm_(comm),
        sampler_(sampler_options(setup, comm)),
        replay_every_(steps_between_replays(setup.options.step, comm.size(), on_gpu)) {}

  bool replays() const { return replay_every_ > 0; }
  /// After the step that follows so many, ranks compute each other's shares again (trainer/training/wrong_rank.hpp).
  bool is_replayed(std::int64_t global_step) const {
    return replays() && (global_step + 1) % replay_every_ == 0;
  }
  /// Collective, between a step's reduction and its update.
  void replay(const StepPosition& position, const SumFingerprints& own);
  bool weighs_shares() const { return !weighed_shares_.empty(); }
  /// Collective, just before the update, in the units that the step ended with.
  void compute_weighed_shares(const StepPosition& position);

  virtual StepSeries run_steps(const StepPosition& position, std::int64_t count, bool stop_requested) = 0;
  /// Steps taken in a series that an error has ended.
  virtual std::int64_t steps_taken() = 0;
  /// Brings the state from where it is trained into whole_state(), and back after a change there. The latter is done
  /// without the units, or with them. Nothing to do on a CPU.
  virtual void fetch_state() {}
  virtual void put_weights() {}
  virtual void commit_state() {}
  /// Shows sums, outputs and what is reduced, where the probe wants to see them.
  virtual void probe_parts(const StepProbe& probe) = 0;
  /// Before the first step with compute_share(), of so many grains. Collective. @returns false: this rank cannot
  virtual bool prepare_shares(std::size_t most_grains) = 0;
  /// The sums of the step stay as they are. @returns as share_parts() has them: of each tensor, last
  virtual SumFingerprints compute_share(const StepPosition& position, const std::vector<Grain>& grains) = 0;

  const TrainingSetup& setup_;
  Communicator& comm_;
  DistributedSampler sampler_;

 private:
  [[noreturn]] void name_wrong_sums(const SumsDifferError& error, std::int64_t step);
  std::vector<ReplayedPart> share_parts() const;
  std::vector<ReplayedPart> state_parts() {
    return parts_of_row(setup_.network.parameters(), weight_update().buffer_names());
  }
  SumFingerprints state_fingerprints();

  std::int64_t replay_every_;  ///< steps; 0: never
  std::vector<std::vector<Grain>> weighed_shares_;
  std::uint64_t weighted_shares_ = 0;
};

/// On CPU cores. Borrows all references.
std::unique_ptr<ParallelStrategy> make_cpu_data_parallel(const TrainingSetup& setup, Communicator& comm);

}  // namespace lockstep
