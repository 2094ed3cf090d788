// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A file of a run that only grows: what is appended is in it whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// What a full disk cut short is taken back, kept in memory, and written before what comes next.
class AppendFile {
 public:
  /// Opens for appending, creates it if need be: not through a symbolic link, and without waiting for the reader
  /// of a FIFO.
  /// @param keep  of what is there, the first so many bytes; nothing: all
  /// @throws IoError
  explicit AppendFile(std::string path, std::optional<std::uint64_t> keep = std::nullopt);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// @throws IoError if the bytes are not in the file yet
  void append(std::span<const std::byte> bytes);
  void append(const std::string& text) { append(std::as_bytes(std::span(text))); }
  /// Returns when everything will survive a power loss. May run on another thread than append.
  /// @throws IoError also if something is not in the file yet
  void sync();
  /// Whether everything is in the file.
  bool is_complete() const;

 private:
  void take_back(std::int64_t size) const;

  std::string path_;
  int fd_;
  mutable std::mutex mutex_;
  std::vector<std::byte> unwritten_;
  int write_error_ = 0;  ///< why it is not written
};

}  // namespace lockstep
