// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// File operations that are made of several calls of Env.
#include "trainer/checkpoint/env.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace lockstep {

void write_synced(Env& env, const std::string& path, std::span<const std::byte> bytes) {
  const auto file = env.create(path);
  file->write(bytes);
  file->sync();
  file->close();
}

void replace_file(Env& env, const std::string& path, std::span<const std::byte> bytes) {
  const std::string temporary = path + ".tmp";
  env.remove_file(temporary);
  try {
    write_synced(env, temporary, bytes);
  } catch (...) {
    try {
      env.remove_file(temporary);
    } catch (...) {  // NOLINT(bugprone-empty-catch): the first error is the one to tell; leftovers are
                     // removed later
    }
    throw;
  }
  env.rename(temporary, path);
  env.sync_directory(parent_directory(path));
}

void remove_tree(Env& env, const std::string& directory) {
  if (!env.exists(directory)) return;
  for (const std::string& name : env.list(directory)) env.remove_file(fmt::format("{}/{}", directory, name));
  env.remove_directory(directory);
}

std::string parent_directory(const std::string& path) {
  std::filesystem::path p(path);
  if (!p.has_filename()) p = p.parent_path();  // "a/b/" names the same directory as "a/b"
  const std::string parent = p.parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace lockstep
