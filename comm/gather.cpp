// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Texts of different lengths travel padded to the longest.
#include "comm/gather.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

namespace lockstep {

std::vector<std::string> gather_text(Communicator& comm, std::string_view mine) {
  const auto sizes = gather(comm, static_cast<std::uint64_t>(mine.size()));
  std::string padded(mine);
  padded.resize(*std::max_element(sizes.begin(), sizes.end()));
  const auto all = gather(comm, std::span<const char>(padded));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) texts.emplace_back(all[rank].data(), sizes[rank]);
  return texts;
}

std::vector<std::string> gather_hosts(Communicator& comm) {
  return gather_text(comm, comm.host());
}

int count_hosts(Communicator& comm) {
  const auto hosts = gather_hosts(comm);
  return static_cast<int>(std::set(hosts.begin(), hosts.end()).size());
}

}  // namespace lockstep
