// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// File operations that are made of several calls of Env.
#include "common/env.hpp"

#include "common/machine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace lockstep {

void write_synced(Env& env, const std::string& path, std::span<const std::byte> bytes) {
  write_pieces_synced(env, path, std::span(&bytes, 1));
}

void write_pieces_synced(Env& env, const std::string& path,
                         std::span<const std::span<const std::byte>> pieces) {
  const auto file = env.create(path);
  for (const std::span<const std::byte> bytes : pieces) file->write(bytes);
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
  if (entry.kind != kind)
    throw IoError(fmt::format("{}: is not a {}; {}", path,
                              kind == EntryKind::kFile ? "regular file" : "directory", fix));
  if (kind == EntryKind::kFile && entry.names > 1)
    throw IoError(fmt::format("{}: is a file that has another name elsewhere (a hard link); {}", path, fix));
}

void make_own(Env& env, const std::string& path) {
  const Entry entry = env.entry(path);
  if (entry.kind == EntryKind::kFile && entry.names > 1) replace_file(env, path, env.read(path));
  require_own(env, path, EntryKind::kFile);
}

std::error_code make_directory_and_parents(Env& env, const std::string& path) {
  std::error_code error;
  std::vector<std::string> changed;
  for (std::string at = path; !std::filesystem::exists(at, error) && parent_directory(at) != at;
       at = changed.back())
    changed.push_back(parent_directory(at));
  std::filesystem::create_directories(path, error);
  if (error) return error;
  for (const std::string& directory : changed) env.sync_directory(directory);
  return error;
}

std::string free_name(Env& env, const std::string& path, const char* separator) {
  std::string name = path;
  for (int number = 2; env.entry(name).kind != EntryKind::kNothing; ++number)
    name = fmt::format("{}{}{}", path, separator, number);
  return name;
}

std::string parent_directory(const std::string& path) {
  std::filesystem::path p(path);
  if (!p.has_filename()) p = p.parent_path();  // "a/b/" names the same directory as "a/b"
  const std::string parent = p.parent_path().string();
  return parent.empty() ? "." : parent;
}

// AppendFile over POSIX. If a piece could not be written whole, its part is removed again.

namespace {

[[noreturn]] void fail_append(const std::string& path, const char* what, int error) {
  const char* hint = error == ENOSPC  ? "; free some space or choose another run.dir"
                     : error == EFBIG ? "; raise the limit on the size of files (ulimit -f)"
                                      : "";
  throw IoError(fmt::format("{}: cannot be {}: {}{}", path, what, std::strerror(error), hint));
}

constexpr std::chrono::milliseconds kPatience{100};
constexpr std::size_t kMostKept = std::size_t{64} << 20;
constexpr int kAppendFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

}  // namespace

AppendFile::AppendFile(std::string path, std::optional<std::uint64_t> keep)
    : path_(std::move(path)), fd_(::open(path_.c_str(), kAppendFlags, 0666)) {
  if (fd_ < 0) fail_append(path_, "opened for writing", errno);
  if (keep && ::ftruncate(fd_, static_cast<off_t>(*keep)) != 0) fail_append(path_, "cut back", errno);
  writer_ = start_thread([this] { write_what_comes(); });
}

AppendFile::~AppendFile() {
  end_threads(std::span(&writer_, 1), mutex_, changed_, ends_);
}

void AppendFile::append(std::span<const std::byte> bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return unwritten_.size() < kMostKept || tried_ == asked_; });
  unwritten_.insert(unwritten_.end(), bytes.begin(), bytes.end());
  const std::int64_t asked = ++asked_;
  changed_.notify_all();
  if (stalls_) return;
  stalls_ = !changed_.wait_for(lock, kPatience, [&] { return tried_ >= asked; });
  if (stalls_) return;
  failed_ = last_.error != 0;
  if (failed_) fail_append(path_, last_.what, last_.error);
}

void AppendFile::sync() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tried_ == asked_; });
    if (!unwritten_.empty()) fail_append(path_, last_.what, last_.error);
  }
  if (::fdatasync(fd_) != 0) fail_append(path_, "synced", errno);
}

bool AppendFile::is_complete() const {
  const std::lock_guard lock(mutex_);
  return !failed_;
}

void AppendFile::write_what_comes() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || tried_ < asked_; });
    if (tried_ == asked_) return;
    const std::int64_t asked = asked_;
    in_work_.swap(unwritten_);
    lock.unlock();
    const Outcome outcome = write_at_end(in_work_);
    lock.lock();
    if (outcome.error != 0) unwritten_.insert(unwritten_.begin(), in_work_.begin(), in_work_.end());
    in_work_.clear();
    last_ = outcome;
    tried_ = asked;
    stalls_ = false;
    changed_.notify_all();
  }
}

/// A part would come before the next whole: it is removed.
AppendFile::Outcome AppendFile::write_at_end(std::span<const std::byte> bytes) const {
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  const int error = write_all(fd_, bytes);
  if (error != 0 && size >= 0 && ::ftruncate(fd_, size) != 0) return {errno, "cut back"};
  return {error};
}

}  // namespace lockstep
