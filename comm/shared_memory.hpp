// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One piece of memory that all ranks of a host read and write.
#pragma once

#include "comm/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace lockstep {

/// Destroying it is collective, too, unless an exception is on its way.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  /// The same bytes on every rank, aligned to 64, zero at first. What one rank wrote before a collective, the
  /// others see after it; in between, only atomic accesses are no data race.
  virtual std::span<std::byte> bytes() = 0;
};

/// Collective over all ranks, with the same size everywhere. Processes share a window of MPI-3, threads plain
/// memory. The communicator must outlive it.
/// @throws ConfigError  the ranks are on several hosts
std::unique_ptr<SharedMemory> share_memory(Communicator& comm, std::size_t bytes);

}  // namespace lockstep
