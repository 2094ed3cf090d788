// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images that stay on disk, read as they are asked for. Those of shards are compared with their SHA-256 then.
#pragma once

#include "common/digest.hpp"
#include "common/memory_file.hpp"
#include "data/stored_file.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

struct ImageShape;  // include/lockstep/shape.hpp

/// Exact sums over the pixels of each channel.
struct PixelSums {
  std::vector<std::uint64_t> values, squares;  ///< [channel]
};

/// Those of no image.
PixelSums no_pixels(int channels);
/// Adds those of these images. @param images  [sample][channel][plane]
void add_pixels(std::span<const std::uint8_t> images, std::size_t plane, PixelSums& sums);
/// False if so many bytes a channel cannot have these sums. A square is at most 255 times its byte, and no variance is
/// below 0.
bool are_possible(const PixelSums& sums, std::uint64_t pixels);

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
  /// Has separate threads make these samples ready. Returns at once; errors show when the samples are read.
  virtual void prefetch(std::vector<std::int64_t> samples) const = 0;
  /// The processes of a host that have this set compare each of its files' blocks once between them. One of them
  /// makes this memory and all call share_checks with it.
  /// @returns null: they share it already, or there is nothing to compare, or no memory
  virtual std::shared_ptr<MemoryFile> make_shared_checks() const { return nullptr; }
  virtual void share_checks(const std::shared_ptr<MemoryFile>& /*of_host*/) const {}
  /// The picture that a sample is, as people call it; empty: not known here.
  virtual std::string_view name_of(std::int64_t /*sample*/) const { return {}; }
};

/// Reads images, some at a time. @param on_progress  takes how many were read so far; may be null
PixelSums sums_of_samples(const SampleStore& store, const ImageShape& shape,
                          std::span<const std::int32_t> samples,
                          const std::function<void(std::int64_t done)>& on_progress = nullptr);

/// Sample after sample in files that go on one from another. No process holds more than the samples it computes.
class ShardStore final : public SampleStore {
 public:
  struct Contents {
    std::vector<std::filesystem::path> files = {};
    std::int64_t samples = 0;
    std::uint64_t sample_bytes = 0;
    std::uint64_t block_bytes = 0;     ///< that have a digest
    std::uint64_t file_bytes = 0;      ///< in each file but the last: whole blocks
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
  /// Without it each process compares all blocks that it reads.
  std::shared_ptr<MemoryFile> make_shared_checks() const override;
  void share_checks(const std::shared_ptr<MemoryFile>& of_host) const override;

 private:
  class ReadAhead;
  using Flag = std::atomic<bool>;

  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(contents_.samples) * contents_.sample_bytes;
  }
  Flag& checked(std::uint64_t block) const { return checked_.load(std::memory_order_acquire)[block]; }
  void read_bytes(std::uint64_t first, std::span<std::uint8_t> to) const;
  void check_blocks(std::uint64_t first, std::uint64_t count) const;
  void check_block(std::uint64_t block, std::uint64_t wanted) const;
  void bring_in(std::int64_t sample) const;

  Contents contents_;
  std::vector<StoredFile> files_;
  std::unique_ptr<Flag[]> own_;  ///< [block]
  mutable std::shared_ptr<MemoryFile> shared_;
  mutable std::atomic<Flag*> checked_;  ///< [block], of one of the two
  std::unique_ptr<ReadAhead> ahead_;    ///< the last member: its thread uses the others
};

}  // namespace lockstep
