// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Written beside its name, then given the name in one step.
#include "trainer/checkpoint/output_file.hpp"

#include "common/error.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace lockstep {
namespace {

[[noreturn]] void refuse_existing(const std::string& path) {
  throw UsageError(fmt::format("{}: is there already; --force replaces it", path));
}

void refuse_what_is_in_the_way(Env& env, const std::string& path, bool replace) {
  if (path.empty()) throw UsageError("the file to write has no name; give one such as model.npz");
  const EntryKind kind = env.entry(path).kind;
  if (kind == EntryKind::kDirectory || path.ends_with('/'))
    throw UsageError(fmt::format("{}: is a directory; name a file in it, such as {}{}model.npz", path, path,
                                 path.ends_with('/') ? "" : "/"));
  if (kind == EntryKind::kLink)
    throw UsageError(
        fmt::format("{}: is a symbolic link, which is not followed; name the file itself", path));
  if (kind == EntryKind::kOther)
    throw UsageError(fmt::format("{}: is no regular file (a device or a FIFO); name another file", path));
  if (kind == EntryKind::kFile && !replace) refuse_existing(path);
}

/// rename() that never replaces; by a hard link where the file system has no such rename.
int rename_to_free_name(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  return ::unlink(from.c_str()) == 0 ? 0 : errno;
}

void publish(Env& env, const std::string& temporary, const std::string& path, bool replace) {
  if (replace) {
    env.rename(temporary, path);
  } else if (const int error = rename_to_free_name(temporary, path); error == EEXIST) {
    refuse_existing(path);  // since we looked
  } else if (error != 0) {
    throw IoError(fmt::format("{}: cannot be written: {}", path, std::generic_category().message(error)));
  }
  env.sync_directory(parent_directory(path));
}

}  // namespace

void write_output_file(Env& env, const std::string& path, std::span<const std::byte> bytes, bool replace) {
  refuse_what_is_in_the_way(env, path, replace);
  const std::string temporary = free_name(env, path + ".partial");
  const auto file = env.create(temporary);
  try {
    file->write(bytes);
    file->sync();
    file->close();
    publish(env, temporary, path, replace);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace lockstep
