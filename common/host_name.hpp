// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The name of this machine, as it stands in messages and locks.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace lockstep {

/// What gethostname() says; "unknown-host" if it says nothing.
inline std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown-host";
  return name.data();
}

}  // namespace lockstep
