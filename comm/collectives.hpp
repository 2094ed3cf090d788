// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parts of data-parallel training, one function for each: replicate, scatter, parallel apply, gather.
/// (All-reduce is Communicator::all_reduce, all-gather is comm/agreement.hpp, send and receive are
/// Communicator's.) On host memory for any backend and any number of ranks; each call is collective. All but
/// replicate() and parallel_apply() are made of messages between two ranks.
#pragma once

#include "comm/communicator.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace lockstep {

/// Every rank's `data`, of the same size everywhere, becomes that of `root`.
void replicate(Communicator& comm, std::span<float> data, int root);

/// `root`'s `whole` is cut in order of rank; it is only looked at there.
/// @param counts  sizes of all ranks' pieces, known to all; they may differ and be 0, and are the whole together
/// @returns this rank's piece
std::vector<float> scatter(Communicator& comm, std::span<const float> whole,
                           std::span<const std::size_t> counts, int root);

/// The reverse: all ranks' pieces in order of rank.
/// @returns the whole on `root`, nothing on the others
std::vector<float> gather_to(Communicator& comm, std::span<const float> mine,
                             std::span<const std::size_t> counts, int root);

/// Runs `body` on every rank at the same time; returns when all are done. An error of any rank is one of all:
/// @throws AgreedError  on every rank, with the code of the lowest that failed
void parallel_apply(Communicator& comm, const std::function<void()>& body);

/// A message at a time in each direction, both at once: what two neighbours exchange without waiting for each
/// other. Sizes may be 0.
void send_and_receive(Communicator& comm, std::span<const std::byte> data, int to, std::span<std::byte> into,
                      int from);

}  // namespace lockstep
