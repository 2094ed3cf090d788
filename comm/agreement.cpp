// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages of ranks beside gradients: values and texts of all, errors that end all.
#include "comm/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

namespace lockstep {

// Codes travel, messages do not: the rank that failed speaks for itself.

namespace {

struct Outcome {
  int code = 0;
  std::string message;
};

Outcome attempt(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const std::exception& error) {
    auto [code, text] = explain(error);
    return {static_cast<int>(code), std::move(text)};
  }
}

/// Names rank and host, but for rank 0: its errors strike all, or are about what only it does.
std::string named(const Communicator& comm, const std::string& message) {
  return comm.rank() == 0 ? message : fmt::format("rank {} on {}: {}", comm.rank(), comm.host(), message);
}

}  // namespace

void agree(Communicator& comm, const std::function<void()>& action) {
  const Outcome mine = attempt(action);
  const auto codes = gather(comm, mine.code);
  for (int rank = 0; rank < comm.size(); ++rank) {
    const int code = at(codes, rank);
    if (code == 0) continue;
    const auto text = rank == comm.rank() ? named(comm, mine.message) : fmt::format("rank {} failed", rank);
    throw AgreedError(static_cast<ExitCode>(code), text, rank);
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
