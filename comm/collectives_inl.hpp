// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// comm/collectives.hpp for numbers of any type: counts become bytes.
#pragma once

#include "comm/collectives.hpp"

#include <numeric>

namespace lockstep {

template <typename T>
std::vector<std::size_t> bytes_of(std::span<const std::size_t> counts) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<std::size_t> bytes(counts.begin(), counts.end());
  for (std::size_t& size : bytes) size *= sizeof(T);
  return bytes;
}

template <typename T>
std::vector<T> scatter(Communicator& comm, std::span<const T> whole, std::span<const std::size_t> counts,
                       int root) {
  std::vector<T> mine(counts[static_cast<std::size_t>(comm.rank())]);
  scatter(comm, std::as_bytes(whole), bytes_of<T>(counts), std::as_writable_bytes(std::span(mine)), root);
  return mine;
}

template <typename T>
std::vector<T> gather_to(Communicator& comm, std::span<const T> mine, std::span<const std::size_t> counts,
                         int root) {
  std::vector<T> whole;
  if (comm.rank() == root) whole.resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  gather_to(comm, std::as_bytes(mine), bytes_of<T>(counts), std::as_writable_bytes(std::span(whole)), root);
  return whole;
}

}  // namespace lockstep
