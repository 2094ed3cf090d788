// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The seam through which everything that must survive a crash reaches the file system. Tests replace it by
/// one that fails, fills up, or forgets what was not synced.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A new file that is being written. Destroying one closes it without a word: call close() to learn whether
/// it worked.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// Appends all of the bytes. @throws IoError, also when the disk is full; part of them may be in the file
  /// then
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// Returns when the contents will survive a power loss. @throws IoError
  virtual void sync() = 0;
  /// @throws IoError if the system reports a late write error
  virtual void close() = 0;
};

/// An exclusive claim on a file. Ends when destroyed, or when the process dies, however it dies. The file
/// stays.
class FileClaim {
 public:
  virtual ~FileClaim() = default;
  /// Overwrites the file in place, so that the claim stays on it. @throws IoError
  virtual void write(const std::string& text) = 0;
};

/// Every method throws IoError with path, system error and hint, unless it says otherwise. Safe to call from
/// several threads at once.
class Env {
 public:
  virtual ~Env() = default;

  /// Creates an empty file that must not exist yet.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
  /// The whole file; its size is known before memory is asked for. @throws MissingDataError if it is not
  /// there
  virtual std::vector<std::byte> read(const std::string& path) = 0;
  /// Atomic within a file system. Replaces a file or an empty directory.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Makes creations, renames and removals of entries of this directory survive a power loss.
  virtual void sync_directory(const std::string& path) = 0;
  /// Creates one level; a directory that is already there is fine.
  virtual void make_directory(const std::string& path) = 0;
  /// Names of the entries, sorted, without "." and "..". @throws MissingDataError if there is no such
  /// directory
  virtual std::vector<std::string> list(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  /// Removes a file. One that is not there is fine.
  virtual void remove_file(const std::string& path) = 0;
  /// Removes an empty directory. One that is not there is fine.
  virtual void remove_directory(const std::string& path) = 0;
  /// Claims a file, creating it if need be; null while another process, or another claim of this one, holds
  /// it.
  virtual std::unique_ptr<FileClaim> claim(const std::string& path) = 0;

  /// The real file system.
  static Env& posix();
};

/// Writes, syncs and closes a new file.
void write_synced(Env& env, const std::string& path, std::span<const std::byte> bytes);
/// Writes `path` in one step: under `path`.tmp, synced, renamed, directory synced. Readers see the old or the
/// new file.
void replace_file(Env& env, const std::string& path, std::span<const std::byte> bytes);
/// Removes a directory with the files in it (one level: what a checkpoint is). One that is not there is fine.
void remove_tree(Env& env, const std::string& directory);

/// "a/b/c" → "a/b"; "c" → ".".
std::string parent_directory(const std::string& path);

}  // namespace lockstep
