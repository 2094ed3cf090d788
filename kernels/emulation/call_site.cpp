// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Places in words: file and line.
#include "kernels/emulation/call_site.hpp"

#include <fmt/format.h>

#include <string_view>

namespace lockstep::emulation {

std::string to_string(const CallSite& call) {
  const std::string_view file = call.file;
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), call.line);
}

}  // namespace lockstep::emulation
