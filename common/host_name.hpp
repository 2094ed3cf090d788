// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What tells this machine from others: its name, as it stands in messages and locks, and the id of its boot.
#pragma once

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace lockstep {

/// What gethostname() says; "unknown-host" if it says nothing.
inline std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown-host";
  return name.data();
}

/// The kernel's id of this boot, the same in all containers of a machine; empty where there is none.
inline std::string host_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace lockstep
