// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each process of this host is looked at in turn: stopped, another program, on its way, or not there.
#include "comm/mpi/absence_report.hpp"

#include "common/advice.hpp"
#include "common/text/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace lockstep {
namespace {

bool is_stopped(const LaunchedProcess& process) {
  return process.state == 'T' || process.state == 't';
}

bool has_come(const LaunchedProcess& process) {
  return process.marked && !is_stopped(process);
}

/// Nothing if it has come.
std::optional<std::string> excuse_of(const LaunchedProcess& process, const Absence& absence) {
  const auto who = fmt::format("rank {} (pid {})", process.rank, process.pid);
  if (is_stopped(process)) return fmt::format("{} is stopped: kill -CONT {} lets it go on", who, process.pid);
  if (process.program != absence.own_program && !process.program.empty() && !process.marked)
    return fmt::format("{} is another program: {}", who, process.program);
  if (!process.marked) return fmt::format("{} has not come there (it is in state {})", who, process.state);
  return std::nullopt;
}

/// "rank 3", "ranks 4-7, 9".
std::string list_of(const std::vector<int>& ranks) {
  std::string text = plural(ranks.size(), "rank") + " ";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", first == 0 ? "" : ", ", ranks[first]);
    if (last > first) text += fmt::format("-{}", ranks[last]);
    first = last + 1;
  }
  return text;
}

std::vector<int> ranks_elsewhere(const Absence& absence) {
  std::vector<int> ranks;
  for (int rank = 0; rank < absence.ranks; ++rank) {
    const bool here = std::any_of(absence.processes.begin(), absence.processes.end(),
                                  [&](const auto& process) { return process.rank == rank; });
    if (!here) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

std::string absence_report(const Absence& absence) {
  std::vector<std::string> findings;
  for (const auto& process : absence.processes) {
    if (process.rank == absence.rank) continue;
    if (const auto excuse = excuse_of(process, absence)) findings.push_back(*excuse);
  }
  if (const auto elsewhere = ranks_elsewhere(absence); !elsewhere.empty())
    findings.push_back(fmt::format(
        "no process here of {}: on another host (see what was said there), or ended", list_of(elsewhere)));
  if (findings.empty())
    findings.emplace_back(
        "all have come, but cannot reach each other: 'lockstep doctor --hostfile FILE' says why");
  return fmt::format(
      "rank {} of {} on {} waited {:g} s for the other ranks in {}: {}. Start the job again (if a rank is "
      "only slow, raise {})",
      absence.rank, absence.ranks, absence.host, absence.seconds, absence.place, fmt::join(findings, "; "),
      spelling().timeout);
}

bool speaks_for_host(const Absence& absence) {
  const auto& all = absence.processes;
  const auto first = std::find_if(all.begin(), all.end(), has_come);
  return first == all.end() || first->rank == absence.rank;
}

}  // namespace lockstep
