// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `data`. Every rank has the whole network and a share of each batch, and gradients are summed while
/// backward runs. On CPU cores (cpu_data_parallel.cpp) or on a GPU
/// (trainer/device/device_data_parallel.cpp).
#pragma once

#include "comm/communicator.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/strategy.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

namespace lockstep {

/// The part that is alike on both: what is rank 0's is broadcast, and the other replicas follow.
class DataParallel : public ParallelStrategy {
 public:
  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) final;
  void distribute() final;
  void collect() final;
  void visit_own_state(const StateVisit& visit) final;
  void require_sight(Sight part) const override;
  StrategyDescription describe() const final;

 protected:
  DataParallel(const TrainingSetup& setup, Communicator& comm, std::int64_t longest_series);

  virtual StepSeries run_steps(const StepPosition& position, std::int64_t count, bool stop_requested) = 0;
  /// Steps taken in a series that an error has ended.
  virtual std::int64_t steps_taken() = 0;
  /// Brings the state from where it is trained into whole_state(), and back after a change there. The latter is done
  /// without the units, or with them. Nothing to do on a CPU.
  virtual void fetch_state() {}
  virtual void put_weights() {}
  virtual void commit_state() {}

  /// The most that this rank computes at a time. Others' shares are among that where they are computed again.
  int most_of_shares(const std::function<int(int rank)>& of_rank) const {
    int most = of_rank(comm_.rank());
    for (int rank = 0; rank < comm_.size() && setup_.options.step.replay_every_steps != 0; ++rank)
      most = std::max(most, of_rank(rank));
    return most;
  }

  const TrainingSetup& setup_;
  Communicator& comm_;
};

/// On CPU cores. Borrows all references.
std::unique_ptr<ParallelStrategy> make_cpu_data_parallel(const TrainingSetup& setup, Communicator& comm);

}  // namespace lockstep
