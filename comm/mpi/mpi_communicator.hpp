// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The communicator between processes, over MPI.
#pragma once

#include "comm/communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"

#include <mpi.h>

#include <chrono>
#include <memory>
#include <string>

namespace lockstep {

/// All ranks of MPI_COMM_WORLD, on a duplicate of it. A collective call: every rank makes one at the same
/// time.
///
/// Nothing inside blocks without a deadline, except the creation itself; that of a part begins when all ranks have
/// come. All-reduce is ours, over point-to-point messages (comm/mpi/mpi_all_reduce.hpp); the others are MPI's
/// non-blocking collectives.
/// A collective makes progress while this rank is inside test() or any other call.
///
/// `runtime` must outlive the communicator, the communicator its pending collectives.
std::unique_ptr<Communicator> make_mpi_communicator(const MpiRuntime& runtime,
                                                    std::chrono::duration<double> timeout);

/// Name and version of the MPI library. Also before MPI_Init.
std::string mpi_library();

// Messages between two ranks, by MPI's point-to-point calls.

/// Uses every tag of `comm`, which belongs to its caller alone: sums have tags, too.
class MpiPointToPoint final : public PointToPoint {
 public:
  MpiPointToPoint(MPI_Comm comm, int size) : comm_(comm), size_(size) {}

  std::unique_ptr<PendingCollective> start_send(std::span<const std::byte> data, int to, int tag) override;
  std::unique_ptr<PendingCollective> start_receive(std::span<std::byte> data, int from, int tag) override;

 private:
  MPI_Comm comm_;
  int size_;
};

// Memory that the processes of a host share: a window of MPI-3.

/// See share_memory(). All ranks of MPI_COMM_WORLD are on one host.
SharedMemory share_mpi_memory(Communicator& comm, std::size_t bytes);

}  // namespace lockstep
