// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a job to a run on every rank.
#include "trainer/run/train.hpp"

#include "comm/agreement.hpp"
#include "common/clock.hpp"
#include "trainer/config/world_batch.hpp"
#include "trainer/doctor/diagnosis.hpp"
#include "trainer/faults/fault_injector.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/leak_on_peer_loss.hpp"
#include "trainer/ranks/rank_facts.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/run/time_limit.hpp"
#include "trainer/run/training_run.hpp"

#include <memory>

namespace lockstep {

int train(const Job& job) {
  const auto process_start = Clock::now();
  refuse_faults_unless_allowed(job);
  catch_stop_signals();
  const TimeLimit time_limit(process_start, job.run.max_seconds, allocation_end_ahead());
  hash_program_in_advance();
  const auto data = load_in_advance(job, recorded_directory(job));
  return run_on_ranks(job.parallel, [&](Communicator& comm) {
    expect_equal_ranks(comm, program_facts("train", comm) + job_facts(job));
    Job on_ranks;
    agree(comm, [&] { on_ranks = for_ranks(job, comm.size()); });
    return run_leaking_on_peer_loss(
        std::make_unique<TrainingRun>(on_ranks, comm, data, process_start, time_limit),
        [](TrainingRun& run) { return run.run(); });
  });
}

}  // namespace lockstep
