// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Brings up the ranks of a command, runs it on each, and turns how it ended into one message and one exit
/// code.
#pragma once

#include "comm/communicator.hpp"
#include "common/console/output.hpp"  // print_error, which goes with every command
#include "trainer/config/job.hpp"

#include <functional>

namespace lockstep {

/// Runs `body` on every rank over the backend the job asks for: MPI (as mpirun or srun started the ranks) or
/// threads of this process. `body` returns the exit code. On an AgreedError its speaker prints and all ranks
/// end in good order; on any other error this rank prints it with its rank and host and aborts the whole job.
/// @returns the exit code for this process: under MPI only rank 0's is non-zero after an orderly end, because
/// launchers pick one of several at random
int run_on_ranks(const ParallelSection& parallel, const std::function<int(Communicator&)>& body);

}  // namespace lockstep
