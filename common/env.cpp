// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// File operations that are made of several calls of Env.
#include "common/env.hpp"

#include "common/error.hpp"

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

void require_own(Env& env, const std::string& path, EntryKind kind) {
  const Entry entry = env.entry(path);
  if (entry.kind == EntryKind::kNothing) return;
  const std::string fix =
      advice("a run writes only into its own directory: move this away, or choose another {run_directory}");
  if (entry.kind == EntryKind::kLink) throw IoError(fmt::format("{}: is a symbolic link; {}", path, fix));
  if (entry.kind != kind) {
    throw IoError(
        fmt::format("{}: is no {}; {}", path, kind == EntryKind::kFile ? "regular file" : "directory", fix));
  }
  if (kind == EntryKind::kFile && entry.names > 1)
    throw IoError(fmt::format("{}: is a file that has another name elsewhere (a hard link); {}", path, fix));
}

void make_own(Env& env, const std::string& path) {
  const Entry entry = env.entry(path);
  if (entry.kind == EntryKind::kFile && entry.names > 1) replace_file(env, path, env.read(path));
  require_own(env, path, EntryKind::kFile);
}

std::string parent_directory(const std::string& path) {
  std::filesystem::path p(path);
  if (!p.has_filename()) p = p.parent_path();  // "a/b/" names the same directory as "a/b"
  const std::string parent = p.parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace lockstep
