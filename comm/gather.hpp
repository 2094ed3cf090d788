// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What every rank has, on all ranks: numbers, digests, texts, names of hosts. Each call is collective.
#pragma once

#include "comm/communicator.hpp"

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

/// Every rank contributes as many values as all others and receives all: [rank][value].
template <typename T>
std::vector<std::vector<T>> gather(Communicator& comm, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = comm.all_gather(std::as_bytes(mine));
  std::vector<std::vector<T>> all(static_cast<std::size_t>(comm.size()), std::vector<T>(mine.size()));
  if (mine.empty()) return all;
  const std::byte* from = bytes.data();
  for (std::vector<T>& rank : all) {
    std::memcpy(rank.data(), from, mine.size_bytes());
    from += mine.size_bytes();
  }
  return all;
}

/// Every rank contributes one value and receives all, by rank.
template <typename T>
std::vector<T> gather(Communicator& comm, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = comm.all_gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// Every rank contributes a text of any length and receives all, by rank.
std::vector<std::string> gather_text(Communicator& comm, std::string_view mine);

/// The host of every rank, by rank.
std::vector<std::string> gather_hosts(Communicator& comm);

/// How many hosts those are.
int count_hosts(Communicator& comm);

}  // namespace lockstep
