// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads /proc/PID/stat and /proc/self/status.
#include "comm/watchdog/process_state.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace lockstep::watchdog {
namespace {

constexpr unsigned long kExiting = 0x4;  // PF_EXITING of the kernel's include/linux/sched.h

/// "PID (NAME) STATE PARENT GROUP ..." from STATE on; NAME may hold anything but ends with the last ')'. "": no such process.
std::string stat_from_state(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? "" : stat.substr(name_end + 2);
}

/// What stands behind "NAME:" in /proc/PID/status; "": nothing.
std::string status_of(const std::string& pid, std::string_view name) {
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':')
      return line.substr(name.size() + 1);
  }
  return "";
}

bool is_killed(int pid) {
  unsigned long pending = 0;
  std::istringstream(status_of(std::to_string(pid), "SigPnd")) >> std::hex >> pending;
  return (pending >> (SIGKILL - 1) & 1U) != 0;
}

}  // namespace

char state_of_process(int pid) {
  const std::string stat = stat_from_state(pid);
  return stat.empty() ? '?' : stat.front();
}

bool runs_this_program(int pid) {
  struct stat own {};
  struct stat other {};
  return ::stat("/proc/self/exe", &own) == 0 &&
         ::stat(fmt::format("/proc/{}/exe", pid).c_str(), &other) == 0 && own.st_dev == other.st_dev &&
         own.st_ino == other.st_ino;
}

bool is_ending(int pid) {
  std::istringstream words(stat_from_state(pid));
  char state = 'X';
  std::string skipped;
  unsigned long flags = 0;
  words >> state;
  for (int i = 0; i < 5; ++i) words >> skipped;  // parent, group, session, terminal, its group
  words >> flags;
  return state == 'X' || state == 'Z' || (flags & kExiting) != 0 || is_killed(pid);
}

bool is_traced() {
  return status_of("self", "TracerPid").find_first_not_of("\t 0") != std::string::npos;
}

}  // namespace lockstep::watchdog
