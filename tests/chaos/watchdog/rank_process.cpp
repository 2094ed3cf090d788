// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// By its environment.
#include "tests/chaos/watchdog/rank_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep::chaos {
namespace {

/// Of a process that may be gone: its rank, -1.
int rank_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  const std::string environment{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string name = "OMPI_COMM_WORLD_RANK=";
  for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    if (environment.compare(at, name.size(), name) == 0)
      return static_cast<int>(std::strtol(environment.c_str() + at + name.size(), nullptr, 10));
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return -1;
}

}  // namespace

std::vector<pid_t> processes_by_rank(const std::vector<pid_t>& processes, int ranks) {
  std::vector<pid_t> pids(static_cast<std::size_t>(ranks), 0);
  for (const pid_t pid : processes) {
    const int rank = rank_of(pid);
    if (rank >= 0 && rank < ranks) pids[static_cast<std::size_t>(rank)] = pid;
  }
  if (std::ranges::count(pids, 0) > 0) pids.clear();
  return pids;
}

}  // namespace lockstep::chaos
