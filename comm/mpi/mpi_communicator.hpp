// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The communicator between processes, over MPI.
#pragma once

#include "comm/communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"

#include <chrono>
#include <memory>

namespace lockstep {

/// All ranks of MPI_COMM_WORLD, on a duplicate of it. A collective call: every rank makes one at the same
/// time.
///
/// Nothing inside blocks without a deadline, except the creation itself. All-reduce is ours, over
/// point-to-point messages (comm/mpi/all_reduce_schedule.hpp); the others are MPI's non-blocking collectives.
/// A collective makes progress while this rank is inside test() or any other call.
///
/// `runtime` must outlive the communicator, the communicator its pending collectives.
std::unique_ptr<Communicator> make_mpi_communicator(const MpiRuntime& runtime,
                                                    std::chrono::duration<double> timeout);

}  // namespace lockstep
