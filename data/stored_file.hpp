// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A file of a set that stays on disk and is read at any place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace lockstep {

/// What to do about files that are not what they were, for messages.
inline constexpr const char* kFixForStore = "copy the set again, or make it again";

/// Reads with pread(2): the ranks of a host share what the system caches, and a disk that fails is an error in place of
/// a SIGBUS. Safe to call from several threads at once.
class StoredFile {
 public:
  /// @throws MissingDataError  there is no such file; DataError  it is no regular file, and is not waited for; IoError
  explicit StoredFile(const std::filesystem::path& path);
  ~StoredFile();
  StoredFile(StoredFile&& other) noexcept;
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& name() const { return name_; }
  /// As it was when it was opened.
  std::uint64_t size() const { return size_; }
  /// Of the last change, in nanoseconds since 1970.
  std::int64_t changed() const { return changed_; }
  /// @returns bytes read, fewer than asked for only at the end
  /// @throws IoError  the disk fails, three times in half a second
  std::size_t read(std::uint64_t offset, std::span<std::uint8_t> to) const;
  /// Asks the system to have these bytes in memory soon; returns at once.
  void bring_in(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t changed_ = 0;
};

/// A file that a thread of this process opens or reads.
struct ReadUnderWay {
  std::string file;
  double seconds = 0;  ///< so far
};

/// The one that has taken longest so far; nothing: none is under way.
std::optional<ReadUnderWay> longest_read();

}  // namespace lockstep
