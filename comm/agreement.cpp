// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages of ranks beside gradients: values and texts of all, errors that end all.
#include "comm/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>

namespace lockstep {

// Codes travel, messages do not: the rank that failed speaks for itself.

void agree(Communicator& comm, const std::function<void()>& action) {
  Explanation mine{ExitCode::kOk, ""};
  try {
    action();
  } catch (const std::exception& error) {
    mine = explain(error);
  }
  const auto codes = gather(comm, mine.code);
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (at(codes, rank) == ExitCode::kOk) continue;
    if (rank != comm.rank()) throw AgreedError(at(codes, rank), fmt::format("rank {} failed", rank), rank);
    // Errors of rank 0 strike all, or are about what only it does.
    if (rank != 0) mine.text = fmt::format("rank {} on {}: {}", rank, comm.host(), mine.text);
    throw AgreedError(mine.code, mine.text, rank);
  }
}

// Texts of different lengths travel padded to the longest.

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
