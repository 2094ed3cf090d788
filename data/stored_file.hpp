// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files of data: opened and read at any place, and again where a disk fails for a moment.
#pragma once

#include "common/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace lockstep {

/// Advice about files that are not what they were, for messages.
inline constexpr const char* kFixForStore = "copy the set again, or make it again";

/// Reads with pread(2): a disk that fails is an error and no SIGBUS. The ranks of a host share what the system caches.
/// Safe to call from several threads at once.
class StoredFile {
 public:
  /// @param if_missing, if_refused  advice
  /// @throws MissingDataError  there is no such file; DataError  it is not a regular file, and is not waited for; IoError
  explicit StoredFile(
      const std::filesystem::path& path, const char* if_missing = kFixForStore,
      const char* if_refused = "check its permissions, and the limit of open files (ulimit -n)");

  const std::string& name() const { return name_; }
  /// The size when it was opened.
  std::uint64_t size() const { return size_; }
  /// @returns bytes read, fewer than asked for only at the end
  /// @throws IoError  the disk fails, three times in half a second
  std::size_t read(std::uint64_t offset, std::span<std::uint8_t> to) const;
  /// Otherwise the system reads on after what was read, for what it takes for the next reads.
  void expect_no_order() const;
  /// Asks the system to have these bytes in memory soon; returns at once.
  void bring_in(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  std::string name_;
  std::uint64_t size_ = 0;
  Descriptor descriptor_;
};

/// A file that a thread of this process opens or reads.
struct ReadUnderWay {
  std::string file;
  double seconds = 0;  ///< so far
};

/// The one that has taken longest so far; nothing: none is under way.
std::optional<ReadUnderWay> longest_read();

}  // namespace lockstep
