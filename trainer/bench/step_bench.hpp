// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench step`: whole training steps of a job, without logs, evaluation or checkpoints.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"

namespace lockstep::bench {

struct StepOptions {
  int rounds = 15;  ///< turns of peak measurement, `world` and `off`
  int steps_per_round = 40;
};

/// Collective. Runs the job's steps with determinism `world` and `off`, and the fused multiply-add peak of
/// this core, in turns; rank 0 prints medians: samples/s, microseconds a step, fraction of the peak
/// (arithmetic of the network over time and over all threads), what `world` costs, and the shares of a step:
///   input      gathering and normalising the batch
///   exposed    communication that backward did not hide: in each step, the wait of the rank that was ready
///   last skew       rank 0's waiting for ranks that were ready later, because the machine kept them
///   optimiser  mean gradient and update
void bench_step(Communicator& comm, const Job& job, const DatasetFuture& data, const StepOptions& options);

}  // namespace lockstep::bench
