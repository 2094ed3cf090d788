// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Places in words: file and line.
#include "kernels/emulation/place.hpp"

#include <fmt/format.h>

#include <string_view>

namespace lockstep::emulation {

std::string to_string(const Place& place) {
  const std::string_view file = place.file;
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), place.line);
}

}  // namespace lockstep::emulation
