// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images that stay on disk: read as they are asked for, and compared with their SHA-256 when they are read first.
#pragma once

#include "common/digest.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// What to do about files that are not what they were, for messages.
inline constexpr const char* kFixForStore = "copy the set again, or make it again";

/// Of the pixels of each channel, exactly.
struct PixelSums {
  std::vector<std::uint64_t> values, squares;  ///< [channel]
};

/// The images of a half of a set, sample after sample in files that go on one from another. Reads with pread(2): the
/// ranks of a host share what the system caches, no process holds more than the samples it computes, and a disk that
/// fails is an error in place of a SIGBUS. Safe to call from several threads at once.
class SampleStore {
 public:
  struct Contents {
    std::vector<std::filesystem::path> files;
    std::int64_t samples = 0;
    std::uint64_t sample_bytes = 0;
    std::uint64_t block_bytes = 0;     ///< that have a digest
    std::uint64_t file_bytes = 0;      ///< of each file but the last: whole blocks
    std::vector<Sha256Digest> blocks;  ///< [block]
    PixelSums sums;                    ///< over all samples
  };

  /// Opens all files. @throws MissingDataError, IoError; DataError  a file is not as long as it must be
  explicit SampleStore(Contents contents);
  ~SampleStore();
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  std::int64_t size() const { return contents_.samples; }
  const PixelSums& sums() const { return contents_.sums; }
  /// Samples `first` and those that follow it. Blocks that were never read are read whole, and compared.
  /// @param to  [samples][sample_bytes], overwritten
  /// @throws DataError  a block is not what its digest says: names file, block and samples; a file has become shorter
  /// @throws IoError    the disk fails, three times in half a second
  void read(std::int64_t first, std::span<std::uint8_t> to) const;
  /// Has a thread of its own bring these samples into the system's cache, and compare blocks that were never read.
  /// Returns at once; errors show when the samples are read.
  void prefetch(std::vector<std::int64_t> samples) const;

 private:
  class ReadAhead;

  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(contents_.samples) * contents_.sample_bytes;
  }
  void read_bytes(std::uint64_t first, std::span<std::uint8_t> to) const;
  void check_blocks(std::uint64_t first, std::uint64_t count) const;
  void check_block(std::uint64_t block, std::uint64_t wanted) const;
  void bring_in(std::int64_t sample) const;

  Contents contents_;
  std::vector<int> descriptors_;                  ///< of the files
  std::unique_ptr<std::atomic<bool>[]> checked_;  ///< [block]
  std::unique_ptr<ReadAhead> ahead_;              ///< the last member: its thread uses the others
};

}  // namespace lockstep
