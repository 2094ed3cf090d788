// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing a file that a user has named, and nothing else that may be there.
#pragma once

#include "common/files/env.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

/// Writes beside `path` and gives the file its name when it is whole and synced. What is there already stays,
/// unless `replace` is set, and then only a regular file goes: never a directory, a device, a FIFO or a
/// symbolic link.
/// @throws UsageError that says what is in the way and what to do; IoError
void write_output_file(Env& env, const std::string& path, std::span<const std::byte> bytes, bool replace);

}  // namespace lockstep
