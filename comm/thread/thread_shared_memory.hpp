// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory that the ranks of one process share: any.
#pragma once

#include "comm/shared_memory.hpp"

namespace lockstep {

/// See share_memory(). All ranks are threads of this process.
std::unique_ptr<SharedMemory> share_thread_memory(Communicator& comm, std::size_t bytes);

}  // namespace lockstep
