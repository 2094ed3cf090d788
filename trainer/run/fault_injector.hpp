// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Faults on purpose, as `inject` in the job asks for them: to see, and to test, what a run does then.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/strategies/strategy.hpp"

#include <cstdint>
#include <string>

namespace lockstep {

/// @throws ConfigError  the job asks for a fault, and LOCKSTEP_ALLOW_INJECT is not 1
void refuse_faults_unless_allowed(const Job& job);

/// One rank's part in a fault: every rank has one, and one of them fails. A run that has no fault has none.
///
/// A fault strikes once in a run: what a run directory has seen is written down there first (`injected`), so
/// that a run which is started again after it goes past the step. With run.resume=never it strikes anew. Only
/// `slow` and `busy` are no events: they last from their step on, in every start of the run.
class FaultInjector {
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

 private:
  bool is_mine() const { return rank_ == comm_.rank(); }
  void note_that_it_strikes();
  void strike();
  void slow_down();
  void flip_bits();
  void flip_bits_of_a_sample();
  void change_message();
  void spoil_a_weight();

  Fault fault_;
  std::int64_t rank_, step_;
  std::string story_;   ///< "rank 2, before step 7: die"
  std::string marker_;  ///< rank 0's file
  const JobSetup& setup_;
  TrainTestData& data_;
  Communicator& comm_;
  ParallelStrategy& strategy_;
  bool struck_ = false;
  Clock::time_point last_series_{};  ///< kSlow, kBusy: when it was let go
};

}  // namespace lockstep
