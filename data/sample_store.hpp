// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images that stay on disk and are read as they are asked for; those of shards are compared with their SHA-256 then.
#pragma once

#include "common/digest.hpp"
#include "data/stored_file.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Of the pixels of each channel, exactly.
struct PixelSums {
  std::vector<std::uint64_t> values, squares;  ///< [channel]
};

/// Adds those of these images. @param images  [sample][channel][plane]
void add_pixels(std::span<const std::uint8_t> images, std::size_t plane, PixelSums& sums);

/// The images of a half of a set. Safe to call from several threads at once.
class SampleStore {
 public:
  SampleStore() = default;
  virtual ~SampleStore() = default;
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  virtual std::int64_t size() const = 0;
  /// Over all samples.
  virtual const PixelSums& sums() const = 0;
  /// @param samples  each below size()
  /// @param to       [samples] of images, [channel][row][column], overwritten
  /// @throws DataError  a sample is not what it was, or is damaged: names file and sample
  /// @throws IoError    the disk fails, three times in half a second
  virtual void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const = 0;
  /// Has threads of its own make these samples ready. Returns at once; errors show when the samples are read.
  virtual void prefetch(std::vector<std::int64_t> samples) const = 0;
  /// The picture that a sample is, as people call it; empty: not known here.
  virtual std::string_view name_of(std::int64_t /*sample*/) const { return {}; }
};

/// Sample after sample in files that go on one from another. No process holds more than the samples it computes.
class ShardStore final : public SampleStore {
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
  explicit ShardStore(Contents contents);
  ~ShardStore() override;

  std::int64_t size() const override { return contents_.samples; }
  const PixelSums& sums() const override { return contents_.sums; }
  /// Those that follow one another are read together. Blocks that were never read are read whole, and compared.
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const override;
  /// Brings them into the system's cache, and compares blocks that were never read.
  void prefetch(std::vector<std::int64_t> samples) const override;

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
  std::vector<StoredFile> files_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  ///< [block]
  std::unique_ptr<ReadAhead> ahead_;              ///< the last member: its thread uses the others
};

}  // namespace lockstep
