// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks as threads of this process: a rank alone, `parallel.backend: thread`, and tests.
#pragma once

#include "comm/communicator.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace lockstep {

/// Runs `body` on `ranks` threads, each with its own end of one group, and returns when all are done. Rank 0 is
/// the calling thread.
///
/// Sums are added in rank order, so fp32 sums are reproducible too. An exception in one rank ends the waits
/// of all others at once with PeerLostError; then the error of the lowest rank that failed by itself is
/// rethrown here. Communicator::abort() releases the others in the same way; it cannot end the process's
/// threads.
///
/// @throws DeviceError  the system gives no thread for each rank; those that have started are released and joined
/// @throws whatever `body` throws; InternalError if two ranks' collectives do not match in kind or size
void run_thread_ranks(int ranks, const std::function<void(Communicator&)>& body,
                      std::chrono::duration<double> timeout = std::chrono::minutes(5));

/// A rank alone, in whichever thread: a group of one.
std::shared_ptr<Communicator> make_lone_rank(std::chrono::duration<double> timeout = std::chrono::minutes(5));

// Memory that the ranks of one process share: any.

/// See share_memory(). All ranks are threads of this process.
SharedMemory share_thread_memory(Communicator& comm, std::size_t bytes);

}  // namespace lockstep
