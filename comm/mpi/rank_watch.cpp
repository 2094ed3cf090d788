// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Watch over MPI's start and end. A thread waits for the deadline, tells who is missing, and ends the
/// process with a code for a lost rank.
#include "comm/mpi/rank_watch.hpp"

#include "comm/launcher.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"

#include <cctype>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>

namespace lockstep {

// Facts of other processes from /proc: environments as they were at the start, states, names of threads.

namespace {

namespace fs = std::filesystem;

/// A process's environment as it was when it was started.
using StartEnvironment = std::map<std::string, std::string>;

StartEnvironment environment_of(const fs::path& process) {
  std::ifstream file(process / "environ", std::ios::binary);
  StartEnvironment environment;
  for (std::string text; std::getline(file, text, '\0');) {
    const std::size_t end = text.find('=');
    if (end != text.npos) environment.try_emplace(text.substr(0, end), text.substr(end + 1));
  }
  return environment;
}

/// Identifies a job: the same for all of its ranks, different for other jobs. Empty: not launched as a rank.
std::string job_of(StartEnvironment& environment) {
  if (const std::string& space = environment["PMIX_NAMESPACE"]; !space.empty()) return space;
  const std::string& step = environment["SLURM_STEP_ID"];
  return step.empty() ? "" : environment["SLURM_JOB_ID"] + "." + step;
}

std::optional<int> rank_of(StartEnvironment& environment) {
  for (const char* name : kRankVariables)
    if (const std::string& value = environment[name]; !value.empty())
      return static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
  return std::nullopt;
}

bool has_thread(const fs::path& process, const std::string& mark) {
  std::error_code gone;
  for (const auto& thread : fs::directory_iterator(process / "task", gone))
    if (value_after(thread.path() / "comm", "") == mark) return true;
  return false;
}

std::string program_of(const fs::path& process) {
  std::error_code hidden;
  return fs::read_symlink(process / "exe", hidden);
}

/// Prefers the program to the wrapper that started it: the program was started last, or carries the mark.
bool speaks_better(const LaunchedProcess& one, const LaunchedProcess& other) {
  if (one.marked != other.marked) return one.marked;
  return one.pid > other.pid;
}

}  // namespace

std::vector<LaunchedProcess> launched_processes(const std::string& mark) {
  StartEnvironment own = environment_of("/proc/self");
  const std::string job = job_of(own);
  std::map<int, LaunchedProcess> by_rank;
  std::error_code no_proc;
  for (const auto& entry : fs::directory_iterator("/proc", no_proc)) {
    const std::string name = entry.path().filename();
    if (job.empty() || std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    StartEnvironment environment = environment_of(entry.path());
    const auto rank = rank_of(environment);
    if (!rank || job_of(environment) != job) continue;
    const std::string stat = process_stat(entry.path());
    const LaunchedProcess process{*rank, static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)),
                                  stat.empty() ? '?' : stat.front(), program_of(entry.path()),
                                  has_thread(entry.path(), mark)};
    const auto [known, is_new] = by_rank.try_emplace(*rank, process);
    if (!is_new && speaks_better(process, known->second)) known->second = process;
  }
  std::vector<LaunchedProcess> processes;
  for (const auto& [rank, process] : by_rank) processes.push_back(process);
  return processes;
}

// The thread that waits for the deadline.

namespace {

/// Ranks that do not speak leave after those that do; by then the launcher has as a rule ended them.
constexpr std::chrono::seconds kOthersSpeak{5};
/// Hosts are not in step: let them all speak before the launcher ends the job.
constexpr std::chrono::milliseconds kLastWords{500};

/// Name of the thread that waits there: by it, ranks of one host know who has come. At most 15 characters.
std::string mark_of(const std::string& place) {
  return "ls:" + place;
}

}  // namespace

RankWatch::RankWatch(int ranks) : ranks_(ranks) {
  if (ranks_ > 1) thread_ = start_thread([this] { watch(); });
}

RankWatch::~RankWatch() {
  end_threads(std::span(&thread_, 1), mutex_, changed_, ending_);
}

void RankWatch::expect(const std::string& place, std::chrono::duration<double> limit) {
  // Far enough away, without overflow in the clock's units: a program may have no limit.
  constexpr std::chrono::duration<double> kForever{1e9};
  const std::lock_guard lock(mutex_);
  waiting_ = true;
  place_ = place;
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
    prctl(PR_SET_NAME, mark_of(place_).c_str());
    const auto over = [this] { return !waiting_ || ending_; };
    if (changed_.wait_until(lock, deadline_, over)) continue;
    const Absence absence{.rank = this_launch().rank,
                          .ranks = ranks_,
                          .host = host_name(),
                          .place = place_,
                          .seconds = limit_.count(),
                          .own_program = program_of("/proc/self"),
                          .processes = launched_processes(mark_of(place_))};
    if (!speaks_for_host(absence) && changed_.wait_for(lock, kOthersSpeak, over)) continue;
    print_error(absence_report(absence));
    if (changed_.wait_for(lock, kLastWords, over)) continue;
    std::_Exit(static_cast<int>(ExitCode::kPeerLost));
  }
}

// Each process of this host is looked at in turn: stopped, another program, on its way, or not there.

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

std::vector<int> ranks_elsewhere(const Absence& absence) {
  std::vector<int> ranks;
  for (int rank = 0; rank < absence.ranks; ++rank)
    if (std::ranges::find(absence.processes, rank, &LaunchedProcess::rank) == absence.processes.end())
      ranks.push_back(rank);
  return ranks;
}

}  // namespace

std::string absence_report(const Absence& absence) {
  std::vector<std::string> findings;
  for (const auto& process : absence.processes) {
    if (process.rank == absence.rank) continue;
    if (const auto excuse = excuse_of(process, absence)) findings.push_back(*excuse);
  }
  if (absence.processes.empty())
    findings.emplace_back("which of them have not come cannot be told here, ps shows whether all run");
  else if (const auto elsewhere = ranks_elsewhere(absence); !elsewhere.empty())
    findings.push_back(
        fmt::format("no process here of {}: on another host (see what was said there), or ended",
                    list_of("rank", elsewhere)));
  if (findings.empty())
    findings.emplace_back(
        "all have come, but cannot reach each other: open TCP between the hosts, or choose the network with "
        "mpirun --mca btl_tcp_if_include NET --mca oob_tcp_if_include NET");
  return fmt::format(
      "rank {} of {} on {} waited {:g} s for the other ranks in {}: {}. Start the job again (if a rank is "
      "only slow, raise {})",
      absence.rank, absence.ranks, absence.host, absence.seconds, absence.place, fmt::join(findings, "; "),
      spelling().timeout);
}

bool speaks_for_host(const Absence& absence) {
  const auto first = std::ranges::find_if(absence.processes, has_come);
  return first == absence.processes.end() || first->rank == absence.rank;
}

}  // namespace lockstep
