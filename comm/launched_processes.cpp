// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What /proc knows of other processes: environments as they were at the start, states, names of threads.
#include "comm/launched_processes.hpp"

#include "comm/launcher.hpp"

#include <cctype>
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

/// What is the same for all ranks of a job and differs from other jobs. Empty: not launched as a rank.
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

/// Of a wrapper and the program that it started the latter counts: it was started last, or carries the mark.
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
