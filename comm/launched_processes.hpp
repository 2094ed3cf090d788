// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The processes that the launcher started on this host as ranks of this job, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep {

struct LaunchedProcess {
  int rank = 0;
  pid_t pid = 0;
  char state = '?';     ///< of /proc/PID/stat: R, S, D, T (stopped), Z (ended)
  std::string program;  ///< path of its executable, as /proc shows it; empty if it may not be seen
  bool marked = false;  ///< one of its threads carries the name that was asked for
};

/// One for each rank that has a living process here, in order of ranks; that of a wrapper script only as long
/// as the script has started nothing. Known by the environment that mpirun and srun give each rank. Empty if
/// this process was not launched as a rank, or where there is no /proc.
/// @param mark  name of a thread, at most 15 characters
std::vector<LaunchedProcess> launched_processes(const std::string& mark);

/// Path of this process's executable, as LaunchedProcess has it.
std::string own_program();

/// Sets the name of the calling thread, for others to see.
void mark_this_thread(const std::string& mark);

}  // namespace lockstep
