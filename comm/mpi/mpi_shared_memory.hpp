// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory that the processes of a host share: a window of MPI-3.
#pragma once

#include "comm/shared_memory.hpp"

namespace lockstep {

/// See share_memory(). All ranks of MPI_COMM_WORLD are on one host.
std::unique_ptr<SharedMemory> share_mpi_memory(Communicator& comm, std::size_t bytes);

}  // namespace lockstep
