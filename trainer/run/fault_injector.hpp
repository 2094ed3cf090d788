// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Deliberate faults (`inject` in the job), to see, and to test, how a run reacts.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/step_observer.hpp"
#include "trainer/training/strategy.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// @throws ConfigError  the job asks for a fault, and LOCKSTEP_ALLOW_INJECT is not 1
void refuse_faults_unless_allowed(const Job& job);

/// One rank's part in a fault: every rank has one, and one of them fails. A run that has no fault has none.
///
/// A fault strikes once in a run: the run directory records it first (`injected`). So a run that is started
/// again after it goes past the step. With run.resume=never it strikes anew. Only `slow` and `busy` are no
/// events: they last from their step on, in every start of the run.
class FaultInjector final : public StepObserver {
 public:
  /// Collective. Borrows all but the job.
  /// @param data          of this rank, in its memory
  /// @throws AgreedError  there is no such rank
  FaultInjector(const Job& job, const JobSetup& setup, TrainTestData& data, Communicator& comm,
                ParallelStrategy& strategy);

  /// At most `count`: a series of steps ends before the one of the fault.
  std::int64_t series_from(std::int64_t steps_taken, std::int64_t count) const;
  /// Before a series; strikes if its first step is the one. Collective at that step.
  void before_series(std::int64_t steps_taken);

  // In the step of the fault, once.
  bool sees_sums() const override { return is_armed(Sight::kSumsOnTheirWay); }
  void sums_leave(const ShownSums& shown) override;
  void sums_arrived(const ShownSums& shown) override;
  void message_arrived(std::span<float> message) override;
  void outputs_computed(std::span<float> outputs, int lanes) override;
  void before_update(ReducedStep& step) override;

 private:
  bool is_mine() const { return rank_ == comm_.rank(); }
  bool is_armed(Sight part) const { return armed_.load(std::memory_order_relaxed) && part == sight_; }
  /// True for the first that asks.
  bool strikes(Sight part) { return part == sight_ && armed_.load() && armed_.exchange(false); }
  void strike();
  void slow_down();
  void lose_time() const;
  void change_state(const TrainedState& trained) const;
  void flip_bits_of_a_sample();

  Fault fault_;
  Sight sight_;  ///< the part of a step that it changes
  std::int64_t rank_, step_;
  std::string story_;   ///< "rank 2, before step 7: die"
  std::string marker_;  ///< rank 0's file
  const JobSetup& setup_;
  TrainTestData& data_;
  Communicator& comm_;
  ParallelStrategy& strategy_;
  bool slows_steps_;                 ///< kSlow, kBusy: in the step, as a slow machine does; false: before it
  bool struck_ = false;              ///< in an earlier start of the run
  std::atomic<bool> armed_ = false;  ///< it strikes at the next chance
  std::map<std::size_t, std::vector<std::int64_t>> sums_before_;  ///< kStale: by the first one of a bucket
  double lost_seconds_ = 0;                                       ///< kSlow, kBusy: by a step
  Clock::time_point last_series_{};                               ///< kSlow, kBusy: when it was let go
};

}  // namespace lockstep
