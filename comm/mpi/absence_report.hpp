// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who has not come to a meeting of all ranks, and who says so.
#pragma once

#include "comm/launched_processes.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// What a rank knows that waits for the others.
struct Absence {
  int rank = 0, ranks = 1;
  std::string host;
  std::string place;  ///< where it waits: "MPI_Init"
  double seconds = 0;
  std::string own_program;
  std::vector<LaunchedProcess> processes;  ///< of this host; marked: they have come
};

/// One line: who waits, for whom, and what to do.
std::string absence_report(const Absence& absence);

/// Whether this rank speaks for its host: the first one there that has come and is not stopped.
bool speaks_for_host(const Absence& absence);

}  // namespace lockstep
