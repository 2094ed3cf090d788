// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// "~" in paths of a job file, as a shell reads it. In key=~/path no shell does.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

/// "~" and "~/..." begin with $HOME (or the home that the system knows), "~name" with that user's home; any
/// other text stays as it is. nullopt if there is no such user or home. Reads the environment.
std::optional<std::string> expand_home(const std::string& path);

}  // namespace lockstep
