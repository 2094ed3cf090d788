// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench step` on GPUs: whole training steps, as the host launches them.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/bench/step_bench.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/job_setup.hpp"

namespace lockstep::bench {

/// Collective. Runs the job's full-batch steps in several ways in turns and prints medians: microseconds a
/// step, the host's part of them (queueing; the rest of the time the host waits or is free), samples/s and
/// FLOP/s. The ways: the job's, without graphs, with determinism `off`, and with vendor kernels where they
/// are installed.
/// @param setup  what set_up() made of the job
void bench_device_step(Communicator& comm, const Job& job, const DatasetFuture& data,
                       const StepOptions& options, JobSetup setup);

}  // namespace lockstep::bench
