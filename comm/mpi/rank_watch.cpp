// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A thread that waits for the deadline, tells who is missing, and ends the process with the code for a lost
/// rank.
#include "comm/mpi/rank_watch.hpp"

#include "comm/launched_processes.hpp"
#include "comm/launcher.hpp"
#include "comm/mpi/absence_report.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "common/console/output.hpp"
#include "common/error.hpp"
#include "common/host_name.hpp"
#include "common/threads.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace lockstep {
namespace {

/// Ranks that do not speak leave after those that do; by then the launcher has as a rule ended them.
constexpr std::chrono::seconds kOthersSpeak{5};
/// Hosts are not in step: let them all speak before the launcher ends the job.
constexpr std::chrono::milliseconds kLastWords{500};

/// Where it waits, for people; and the name of its thread meanwhile, by which ranks of one host know of each
/// other who has come. At most 15 characters.
struct MeetingName {
  const char* name;
  const char* mark;
};

MeetingName name_of(Meeting meeting) {
  return meeting == Meeting::kInit ? MeetingName{"MPI_Init", "ls:MPI_Init"}
                                   : MeetingName{"MPI_Finalize", "ls:MPI_Finalize"};
}

Absence look_around(Meeting meeting, int ranks, double seconds) {
  Absence absence{.rank = this_launch().rank,
                  .ranks = ranks,
                  .host = host_name(),
                  .place = name_of(meeting).name,
                  .seconds = seconds,
                  .own_program = own_program(),
                  .processes = launched_processes(name_of(meeting).mark)};
  return absence;
}

}  // namespace

RankWatch::RankWatch(int ranks) : ranks_(ranks) {
  if (ranks_ > 1) thread_ = start_thread([this] { watch(); });
}

RankWatch::~RankWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void RankWatch::expect(Meeting meeting, std::chrono::duration<double> limit) {
  // Far enough away, without overflow in the clock's units.
  constexpr std::chrono::duration<double> kForever{1e9};
  const std::lock_guard lock(mutex_);
  waiting_ = true;
  meeting_ = meeting;
  limit_ = std::min(limit, kForever);
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit_);
  changed_.notify_one();
}

void RankWatch::met() {
  const std::lock_guard lock(mutex_);
  waiting_ = false;
  changed_.notify_one();
}

void RankWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait(lock, [this] { return waiting_ || ending_; });
    if (ending_) return;
    mark_this_thread(name_of(meeting_).mark);
    const auto over = [this] { return !waiting_ || ending_; };
    if (changed_.wait_until(lock, deadline_, over)) continue;
    const Absence absence = look_around(meeting_, ranks_, limit_.count());
    if (!speaks_for_host(absence) && changed_.wait_for(lock, kOthersSpeak, over)) continue;
    print_error(absence_report(absence));
    if (changed_.wait_for(lock, kLastWords, over)) continue;
    _exit(static_cast<int>(ExitCode::kPeerLost));
  }
}

}  // namespace lockstep
