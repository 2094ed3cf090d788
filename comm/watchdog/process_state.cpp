// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads /proc/PID/stat and /proc/self/status.
#include "comm/watchdog/process_state.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

namespace lockstep::watchdog {

/// "PID (NAME) STATE ..."; NAME may hold anything but ends with the last ')'.
char state_of_process(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

bool is_traced() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return line.substr(10).find_first_not_of("\t 0") != std::string::npos;
  }
  return false;
}

}  // namespace lockstep::watchdog
