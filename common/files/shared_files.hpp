// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files that come with the program: networks, jobs, published hashes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// Where `folder` of such files may be, in the order in which to look: ../share/lockstep/FOLDER beside the
/// program, for an installed program has its own, whatever has become of its sources; then `source`, where it
/// was built from.
std::vector<std::filesystem::path> shared_directories(const std::string& folder, const std::string& source);

}  // namespace lockstep
