// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// shared_directories: beside the program first.
#include "common/files/shared_files.hpp"

#include <system_error>

namespace lockstep {

std::vector<std::filesystem::path> shared_directories(const std::string& folder, const std::string& source) {
  std::vector<std::filesystem::path> directories;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty())
    directories.push_back(program.parent_path().parent_path() / "share/lockstep" / folder);
  directories.emplace_back(source);
  return directories;
}

}  // namespace lockstep
