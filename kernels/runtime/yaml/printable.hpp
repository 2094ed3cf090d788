// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which bytes may stand in a YAML text: printable Unicode in well-formed UTF-8.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

struct UnprintableByte {
  std::size_t offset;
  const char* cause;  ///< "a NUL byte", "bytes that are not UTF-8", ...
};

/// The first place where `text` is not printable UTF-8. Tabs, line feeds and CR LF are allowed, other control
/// characters are not: yaml-cpp takes byte 4 for the end of the file and would silently drop what follows.
std::optional<UnprintableByte> find_unprintable(std::string_view text);

}  // namespace lockstep
