// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Codes travel, messages do not: the rank that failed speaks for itself.
#include "comm/agreement.hpp"

#include "comm/gather.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

namespace lockstep {
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

/// What strikes rank 0 strikes all, or is about what only rank 0 does. Others failed where rank 0 did not.
std::string named(const Communicator& comm, const std::string& message) {
  return comm.rank() == 0 ? message : fmt::format("rank {} on {}: {}", comm.rank(), comm.host(), message);
}

}  // namespace

void agree(Communicator& comm, const std::function<void()>& action) {
  const Outcome mine = attempt(action);
  const auto codes = gather(comm, mine.code);
  for (int rank = 0; rank < comm.size(); ++rank) {
    const int code = codes[static_cast<std::size_t>(rank)];
    if (code == 0) continue;
    const auto text = rank == comm.rank() ? named(comm, mine.message) : fmt::format("rank {} failed", rank);
    throw AgreedError(static_cast<ExitCode>(code), text, rank);
  }
}

}  // namespace lockstep
