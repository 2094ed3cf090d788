// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starts the ranks of a command, runs it on each, and reports the end as one message and exit
/// code.
#pragma once

#include "comm/agreement.hpp"
#include "comm/communicator.hpp"
#include "common/output.hpp"  // print_error, which goes with every command
#include "trainer/config/job.hpp"

#include <functional>
#include <memory>

namespace lockstep {

/// Runs `body` on every rank over the job's backend: MPI (started by mpirun or srun) or threads. A process that no launcher
/// started is one rank, and starts no MPI. `body` returns the exit code. On an AgreedError its speaker prints and all ranks
/// end in good order; on any other error this rank prints it with its rank and host and aborts the whole job.
/// @returns the exit code for this process: under MPI only rank 0's is non-zero after an orderly end, because
/// launchers pick one of several at random
int run_on_ranks(const ParallelSection& parallel, const std::function<int(Communicator&)>& body);

// Facts from the launcher (mpirun, srun) in the environment, before MPI is up.

/// True if mpirun started this process with rank 0's command line, so that both do the same. False under a
/// script that may give each rank arguments of its own.
bool repeats_rank_0(int argc, const char* const* argv);

/// True if this process should print messages that all ranks share, such as a wrong command line.
bool speaks_for_all();

// Abandoning a rank's GPU when another rank is lost.

/// Runs `action` on `object`, and destroys it; but not when an error strikes that the ranks have not agreed
/// on. Freeing GPU memory waits for the work that is queued, and an all-reduce that a lost rank will never
/// join does not end: this rank would hang in a destructor before it has said why and ended the others. The
/// process is about to end anyway.
template <typename Object, typename Action>
auto run_leaking_on_peer_loss(std::unique_ptr<Object> object, const Action& action) {
  try {
    return action(*object);
  } catch (const AgreedError&) {
    throw;
  } catch (...) {
    static_cast<void>(object.release());
    throw;
  }
}

}  // namespace lockstep
