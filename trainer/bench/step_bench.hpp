// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench step`: whole training steps of a job, without logs, evaluation or checkpoints.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/job_setup.hpp"

namespace lockstep::bench {

struct StepOptions {
  int rounds = 15;  ///< turns of peak measurement, `world` and `off`
  int steps_per_round = 40;
};

/// Collective. Runs the job's steps with determinism `world` and `off`, and the fused multiply-add peak of
/// this core, in turns; rank 0 prints medians: samples/s, microseconds a step, fraction of the peak
/// (arithmetic of the network over time and over all threads), shares of input, exposed communication and
/// optimiser, and what `world` costs.
void bench_step(Communicator& comm, const Job& job, const DataInAdvance& data, const StepOptions& options);

}  // namespace lockstep::bench
