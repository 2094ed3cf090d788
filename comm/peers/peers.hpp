// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce of small sums between the GPUs of one host in one step: every rank reads the terms of all others in their
/// memory. For sums that are too small for NCCL's rings.
#pragma once

#include "comm/collectives.hpp"

#include <cstddef>
#include <memory>

namespace lockstep {

/// Larger sums are left to the other way, if it is work on a stream, or go in pieces of this size. By estimate one step
/// on n GPUs takes 5 us and (n - 1) S / B for S bytes at B = 450 GB/s, a ring 20 us and 2 (n - 1) / n S / B: for 8 they
/// are equal at 1.3 MB. Not timed.
inline constexpr std::size_t kPeerSumBytes = std::size_t{512} << 10;

/// Queues on streams, and may be captured; what holds for graphs and streams: kernels/peer_sums.hpp. A collective call
/// over `comm`, all of whose ranks are on one host. Borrows comm and device. Destroying it is collective, too, unless
/// an exception is on its way.
///
/// A thread looks after kernels that wait for a rank: where that is lost (by the communicator's watch, or after its
/// timeout()) it ends their wait, and check(), confirm() and later calls throw PeerLostError, which names it.
/// @param other  for larger sums, with everything that is not of this host's memory; null: none
/// @throws AgreedError  with DeviceError's code: on which rank, why not (several hosts, more than PeerSums::kMostRanks
///                      ranks, no way to read another one's memory), and what to use in its place
std::unique_ptr<DeviceAllReduce> make_peer_all_reduce(Communicator& comm, Device& device,
                                                      std::unique_ptr<DeviceAllReduce> other);

}  // namespace lockstep
