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
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockstep {

namespace {

/// Ranks that do not speak leave after those that do; by then the launcher has as a rule ended them.
constexpr std::chrono::seconds kOthersSpeak{5};
/// Hosts are not in step: let them all speak before the launcher ends the job.
constexpr std::chrono::milliseconds kLastWords{500};

/// Name of a meeting for people, and of its thread meanwhile. By the latter, ranks of one host know who has come. At
/// most 15 characters.
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
    findings.push_back(
        fmt::format("no process here of {}: on another host (see what was said there), or ended",
                    list_of("rank", elsewhere)));
  if (findings.empty())
    findings.emplace_back(
        "all have come, but cannot reach each other: open TCP between the hosts, or choose the network with "
        "mpirun "
        "--mca btl_tcp_if_include NET --mca oob_tcp_if_include NET");
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

// Facts of other processes from /proc: environments as they were at the start, states, names of threads.

namespace {

namespace fs = std::filesystem;

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A process's environment as it was when it was started: NAME=VALUE, each ended by a zero byte.
class StartEnvironment {
 public:
  explicit StartEnvironment(const fs::path& process) : text_('\0' + contents_of(process / "environ")) {}

  std::string_view operator[](std::string_view name) const {
    const std::string key = '\0' + std::string(name) + '=';
    const auto at = text_.find(key);
    if (at == std::string::npos) return {};
    const auto value = std::string_view(text_).substr(at + key.size());
    return value.substr(0, value.find('\0'));
  }

 private:
  std::string text_;
};

/// Identifies a job: the same for all of its ranks, different for other jobs. Empty: not launched as a rank.
std::string job_of(const StartEnvironment& environment) {
  if (const auto space = environment["PMIX_NAMESPACE"]; !space.empty()) return std::string(space);
  const auto step = environment["SLURM_STEP_ID"];
  return step.empty() ? "" : std::string(environment["SLURM_JOB_ID"]).append(".").append(step);
}

std::optional<int> rank_of(const StartEnvironment& environment) {
  for (const char* name : kRankVariables) {
    const auto value = std::string(environment[name]);
    if (!value.empty()) return static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
  }
  return std::nullopt;
}

/// /proc/PID/stat is "PID (NAME) STATE ..."; NAME may hold anything but ends with the last ')'.
char state_of(const fs::path& process) {
  const std::string stat = contents_of(process / "stat");
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

bool has_thread(const fs::path& process, const std::string& mark) {
  std::error_code gone;
  for (const auto& thread : fs::directory_iterator(process / "task", gone)) {
    if (contents_of(thread.path() / "comm") == mark + "\n") return true;
  }
  return false;
}

std::string program_of(const fs::path& process) {
  std::error_code hidden;
  const auto path = fs::read_symlink(process / "exe", hidden);
  return hidden ? "" : path.string();
}

/// Prefers the program to the wrapper that started it: the program was started last, or carries the mark.
bool speaks_better(const LaunchedProcess& one, const LaunchedProcess& other) {
  if (one.marked != other.marked) return one.marked;
  return one.pid > other.pid;
}

}  // namespace

std::vector<LaunchedProcess> launched_processes(const std::string& mark) {
  const std::string job = job_of(StartEnvironment("/proc/self"));
  std::map<int, LaunchedProcess> by_rank;
  std::error_code no_proc;
  for (const auto& entry : fs::directory_iterator("/proc", no_proc)) {
    const std::string name = entry.path().filename();
    if (job.empty() || std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    const StartEnvironment environment(entry.path());
    const auto rank = rank_of(environment);
    if (!rank || job_of(environment) != job) continue;
    LaunchedProcess process{*rank, static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)),
                            state_of(entry.path()), program_of(entry.path()), has_thread(entry.path(), mark)};
    const auto [known, is_new] = by_rank.try_emplace(*rank, process);
    if (!is_new && speaks_better(process, known->second)) known->second = process;
  }
  std::vector<LaunchedProcess> processes;
  processes.reserve(by_rank.size());
  for (auto& [rank, process] : by_rank) processes.push_back(std::move(process));
  return processes;
}

std::string own_program() {
  return program_of("/proc/self");
}

void mark_this_thread(const std::string& mark) {
  prctl(PR_SET_NAME, mark.c_str());
}

}  // namespace lockstep
