// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Why there are no more threads: what /proc, the shell's limits and the cgroups say.
#include "common/threads.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <fstream>
#include <vector>

namespace lockstep {
namespace {

/// What follows the first line that begins with `name`, without spaces; "" if there is none.
std::string value_after(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", name.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// A cgroup's limit on tasks, from its path in version 2 and 1; "" or "max": none.
std::string most_tasks_of_cgroup() {
  const std::string v2 = value_after("/proc/self/cgroup", "0::");
  for (const std::string& folder : {"/sys/fs/cgroup" + v2, std::string("/sys/fs/cgroup/pids")}) {
    if (auto most = value_after(folder + "/pids.max", ""); !most.empty()) return most;
  }
  return "";
}

std::vector<std::string> limits() {
  std::vector<std::string> texts;
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    texts.push_back(fmt::format("ulimit -u allows this user {}", limit.rlim_cur));
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    texts.push_back(fmt::format("ulimit -v allows this process {} for its data and its threads' stacks",
                                format_memory(limit.rlim_cur)));
  if (const std::string most = most_tasks_of_cgroup(); !most.empty() && most != "max")
    texts.push_back(fmt::format("its container or Slurm job may have {} (pids.max)", most));
  if (texts.empty())
    texts.push_back(
        fmt::format("the system allows {} in all", value_after("/proc/sys/kernel/threads-max", "")));
  return texts;
}

}  // namespace

std::string explain_missing_thread() {
  return fmt::format(
      "a thread cannot be started: this process has {} threads, {}; start fewer ranks on this machine, "
      "give them fewer threads, or raise the limit",
      value_after("/proc/self/status", "Threads:"), fmt::join(limits(), ", "));
}

bool is_missing_thread(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again;
}

void throw_missing_thread(const std::system_error& error) {
  if (is_missing_thread(error)) throw DeviceError(explain_missing_thread());
  throw error;
}

std::thread start_thread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw_missing_thread(error);
  }
}

}  // namespace lockstep
