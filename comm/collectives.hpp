// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parts of data-parallel training, one function for each: replicate, scatter, parallel apply, gather.
/// (All-reduce is Communicator::all_reduce, all-gather is comm/agreement.hpp, send and receive are
/// Communicator's.) On host memory for any backend and any number of ranks; each call is collective and, but for
/// parallel_apply(), made of messages between two ranks.
#pragma once

#include "comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

/// Every rank's `data`, of the same size everywhere, becomes that of `root`.
template <typename T>
void replicate(Communicator& comm, std::span<T> data, int root) {
  static_assert(std::is_trivially_copyable_v<T>);
  comm.broadcast(std::as_writable_bytes(data), root);
}

/// `root`'s `whole` is cut in order of rank. `mine`, whose sizes may differ and be 0 and which together are as
/// long as `whole`, becomes this rank's piece. `whole` is only looked at on `root`.
/// @param bytes  size of every rank's piece, on root
void scatter(Communicator& comm, std::span<const std::byte> whole, std::span<const std::size_t> bytes,
             std::span<std::byte> mine, int root);

/// The reverse: `whole`, on `root`, becomes all ranks' pieces in order of rank.
void gather_to(Communicator& comm, std::span<const std::byte> mine, std::span<const std::size_t> bytes,
               std::span<std::byte> whole, int root);

/// Runs `body` on every rank at the same time; returns when all are done. An error of any rank is one of all:
/// @throws AgreedError  on every rank, with the code of the lowest that failed
void parallel_apply(Communicator& comm, const std::function<void()>& body);

/// A message at a time in each direction, both at once: what two neighbours exchange without waiting for each
/// other. Sizes may be 0.
void send_and_receive(Communicator& comm, std::span<const std::byte> data, int to, std::span<std::byte> into,
                      int from);

// Collectives for numbers of any type: counts become bytes.

template <typename T>
std::vector<std::size_t> bytes_of(std::span<const std::size_t> counts) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<std::size_t> bytes(counts.begin(), counts.end());
  for (std::size_t& size : bytes) size *= sizeof(T);
  return bytes;
}

/// Scatters numbers. `counts`, of every rank's piece, is known to all ranks. Returns this rank's piece.
template <typename T>
std::vector<T> scatter(Communicator& comm, std::span<const T> whole, std::span<const std::size_t> counts,
                       int root) {
  std::vector<T> mine(at(counts, comm.rank()));
  scatter(comm, std::as_bytes(whole), bytes_of<T>(counts), std::as_writable_bytes(std::span(mine)), root);
  return mine;
}

/// Returns the whole on `root`, nothing on the others.
template <typename T>
std::vector<T> gather_to(Communicator& comm, std::span<const T> mine, std::span<const std::size_t> counts,
                         int root) {
  std::vector<T> whole;
  if (comm.rank() == root) whole.resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  gather_to(comm, std::as_bytes(mine), bytes_of<T>(counts), std::as_writable_bytes(std::span(whole)), root);
  return whole;
}

}  // namespace lockstep
