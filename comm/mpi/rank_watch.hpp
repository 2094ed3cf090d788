// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A deadline for MPI's start and end, where MPI waits for every rank without one.
#pragma once

#include "common/machine.hpp"

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {

/// The least for MPI_Init. A machine under load takes seconds to start all ranks, however short other waits are to be.
inline constexpr std::chrono::seconds kLeastForStart{10};

/// A thread that ends this process with exit code 71 when the ranks do not meet in time. Reasons: a rank that is
/// stopped, another program in the place of a rank, a host that is gone. First it says which ranks have not
/// come, as far as the processes of this host tell. One rank a host speaks.
///
/// Costs nothing, and does nothing, in a job of one rank.
class RankWatch {
 public:
  /// @param ranks  how many were launched
  explicit RankWatch(int ranks);
  ~RankWatch();

  /// This rank is about to wait for the others.
  /// @param place  the call in which all ranks must meet: "MPI_Init", "MPI_Finalize"   @param limit  from now on
  void expect(const std::string& place, std::chrono::duration<double> limit);
  /// All have come.
  void met();

 private:
  void watch();

  int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false, ending_ = false;
  std::string place_;
  Clock::time_point deadline_;
  std::chrono::duration<double> limit_{};
  std::thread thread_;
};

// The processes that the launcher started on this host as ranks of this job, as /proc shows them.

struct LaunchedProcess {
  int rank = 0;
  pid_t pid = 0;
  char state = '?';     ///< as in /proc/PID/stat: R, S, D, T (stopped), Z (ended)
  std::string program;  ///< path of its executable, as /proc shows it; empty if it may not be seen
  bool marked = false;  ///< one of its threads carries the name that was asked for
};

/// One for each rank that has a living process here, in order of ranks. That of a wrapper script only as long
/// as the script has started nothing. Known by the environment that mpirun and srun give each rank. Empty if
/// this process was not launched as a rank, or by a launcher that gives a job no name, as MPICH's, or where there is no
/// /proc.
/// @param mark  name of a thread, at most 15 characters
std::vector<LaunchedProcess> launched_processes(const std::string& mark);

// Ranks that are missing at a meeting of all ranks, and the rank that says so.

/// Facts known to a rank that waits for the others.
struct Absence {
  int rank = 0, ranks = 1;
  std::string host;
  std::string place;  ///< the call in which it waits: "MPI_Init"
  double seconds = 0;
  std::string own_program;
  std::vector<LaunchedProcess> processes;  ///< those of this host; marked: they have come
};

/// One line: the waiting ranks, the ranks they wait for, and advice.
std::string absence_report(const Absence& absence);

/// True if this rank speaks for its host: the first one there that has come and is not stopped.
bool speaks_for_host(const Absence& absence);

}  // namespace lockstep
