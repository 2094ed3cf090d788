// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// By the control plane.
#include "comm/agreement.hpp"
#include "comm/communicator.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

namespace lockstep {

SharedMemory share_memory(Communicator& comm, std::size_t bytes) {
  if (const int hosts = count_hosts(comm); hosts > 1)
    throw ConfigError(fmt::format(
        "the ranks are on {} hosts, and memory is shared on one: start them all on one host", hosts));
  return comm.backend() == "mpi" ? share_mpi_memory(comm, bytes) : share_thread_memory(comm, bytes);
}

}  // namespace lockstep
