// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Written beside its name, then given the name in one step.
#include "common/output_file.hpp"

#include "common/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

[[noreturn]] void refuse_existing(const std::string& path) {
  throw UsageError(fmt::format("{}: is there already; --force replaces it", path));
}

/// rename() that never replaces; by a hard link where the file system has no such rename. @returns errno
int rename_to_free_name(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  return ::unlink(from.c_str()) == 0 ? 0 : errno;
}

}  // namespace

void require_free_output(Env& env, const std::string& path, bool replace) {
  if (path.empty()) throw UsageError("the file to write has no name; give one such as model.npz");
  const EntryKind kind = env.entry(path).kind;
  if (kind == EntryKind::kDirectory || path.ends_with('/'))
    throw UsageError(fmt::format("{}: is a directory; name a file in it, such as {}{}model.npz", path, path,
                                 path.ends_with('/') ? "" : "/"));
  if (kind == EntryKind::kLink)
    throw UsageError(
        fmt::format("{}: is a symbolic link, which is not followed; name the file itself", path));
  if (kind == EntryKind::kOther)
    throw UsageError(fmt::format("{}: is not a regular file (a device or a FIFO); name another file", path));
  if (kind == EntryKind::kFile && !replace) refuse_existing(path);
}

OutputFile::OutputFile(Env& env, std::string path, bool replace)
    : env_(env), path_(std::move(path)), replace_(replace) {
  require_free_output(env_, path_, replace_);
  const std::string free = free_name(env_, fmt::format("{}.{}.partial", path_, ::getpid()));
  file_ = env_.create(free);
  unfinished_ = free;
}

OutputFile::~OutputFile() {
  file_.reset();
  if (!unfinished_.empty()) ::unlink(unfinished_.c_str());
}

void OutputFile::publish() {
  file_->sync();
  file_->close();
  if (replace_) {
    require_free_output(env_, path_, replace_);
    env_.rename(unfinished_, path_);
  } else if (const int error = rename_to_free_name(unfinished_, path_); error == EEXIST) {
    refuse_existing(path_);
  } else if (error != 0) {
    throw IoError(fmt::format("{}: cannot be written: {}", path_, std::generic_category().message(error)));
  }
  unfinished_.clear();
  env_.sync_directory(parent_directory(path_));
}

void write_output_file(Env& env, const std::string& path, std::span<const std::byte> bytes, bool replace) {
  OutputFile file(env, path, replace);
  file.write(bytes);
  file.publish();
}

}  // namespace lockstep
