// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A set in shards. It has images of one size that need not fit into memory, or fp32 features; their labels, one a
/// sample or any number of them, and the SHA-256 of each block. docs/shard-format.md describes the files.
///
///   shards.index                     a line of JSON, and the SHA-256 of that line in hexadecimal
///   train-00000.shard, ...           samples [sample][channel][row][column], one file going on where the last one ends
///   train-labels.u32                 [sample], little-endian; of several labels how many, and each, for every sample
///   train-blocks.sha256              [block] of 32 bytes
///   train-names.jsonl                see names.hpp; may be missing
///   test-..., validation-...         likewise; the latter may be missing
#pragma once

#include "common/buffers.hpp"
#include "common/digest.hpp"
#include "common/env.hpp"
#include "data/dataset.hpp"
#include "data/sets/set_directory.hpp"
#include "data/sets/set_loading.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr const char* kShardIndexFile = "shards.index";
inline constexpr std::int64_t kMostShardClasses = 1'000'000;
inline constexpr std::uint64_t kMostShardIndexBytes = std::uint64_t{32} << 20;

/// How a half's images lie in files and blocks.
struct ShardSizes {
  std::uint64_t block_bytes = std::uint64_t{256} << 10;  ///< that have a SHA-256; a power of two from 512 on
  std::uint64_t shard_bytes = std::uint64_t{1} << 30;    ///< in each file but the last: whole blocks
};

struct ShardHalf {
  std::int64_t samples = 0;
  std::int64_t label_count = 0;     ///< over all samples, where they have any number of labels
  Sha256Digest labels{}, blocks{};  ///< digests of those two files
  PixelSums sums = {};              ///< over all pixels; of fp32 features empty
};

/// Contents of shards.index.
struct ShardIndex {
  ImageShape shape;
  bool is_fp32 = false;         ///< little-endian features, all of them finite; otherwise bytes
  bool has_label_sets = false;  ///< a sample has any number of labels; otherwise one
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  ///< one for each class; empty: they are numbers
  std::string columns;  ///< how a table's rows are read (data/sets/table_columns.hpp); empty: as numbers
  ShardSizes sizes;
  ShardHalf train, test, validation;  ///< the last one may have no samples: it is not there

  std::uint64_t sample_bytes() const {
    return checked_product(shape.features(), is_fp32 ? sizeof(float) : sizeof(std::uint8_t));
  }
  std::uint64_t bytes_of(const ShardHalf& half) const {
    return checked_product(half.samples, sample_bytes());
  }
};

/// @param file  for messages
/// @throws DataError  naming what is wrong: damaged, too long, of another version, numbers that cannot be
ShardIndex parse_shard_index(std::string_view text, const std::string& file);
/// parse_shard_index takes it back.
std::string to_text(const ShardIndex& index);

/// "train-00012.shard"
std::string shard_file(std::string_view half, std::uint64_t number);
std::string shard_labels_file(std::string_view half);
std::string shard_blocks_file(std::string_view half);
/// True if a file of such a set may have that name.
bool is_name_in_shards(std::string_view name);

/// Writes a set, sample after sample, in the memory of a few blocks for any size. Nothing has its final name before
/// all is written and synced, and shards.index gets its name last: without it there is no set.
class ShardWriter {
 public:
  struct Options {
    bool replace = false;  ///< a set that is in the directory already, of any format
    ShardSizes sizes = {};
    PictureFit fit = PictureFit::kSqueeze;         ///< with which its images were made
    bool is_fp32 = false, has_label_sets = false;  ///< see ShardIndex
    std::string columns = {};                      ///< see ShardIndex
  };

  /// Makes the directory if need be, and claims it.
  /// @param class_names  in label order
  /// @throws UsageError, IoError  as SetDirectory; DataError  names or sizes that no index may have
  ShardWriter(Env& env, const std::string& directory, const ImageShape& shape,
              std::vector<std::string> class_names, const Options& options);
  ~ShardWriter();

  /// Appends to a half; they may take turns.
  /// @param sample    [channel][row][column]: a byte each, or a float, which is finite
  /// @param labels    ascending, each below the number of classes; one, unless samples have any number of them
  /// @param original  the picture that it was made of, for the list of names; empty: not known. All samples of a half
  ///                  have one, or none
  /// @throws IoError
  void add(SetHalf half, std::span<const std::uint8_t> sample, std::span<const std::uint32_t> labels,
           const std::filesystem::path& original = {});
  void add(SetHalf half, std::span<const std::uint8_t> sample, std::uint32_t label,
           const std::filesystem::path& original = {}) {
    add(half, sample, std::span(&label, 1), original);
  }
  /// Puts the set in the place of what was there; nothing can be added after that. Without it nothing stays.
  /// @throws DataError  there are no samples to train on, or to test with; IoError
  void publish();
  /// The index that was published.
  const ShardIndex& index() const { return index_; }

 private:
  class HashedFile;
  class Half;

  Half& start(SetHalf half);

  Env& env_;
  SetDirectory directory_;
  ShardIndex index_;
  std::unique_ptr<Half> halves_[3];  ///< by SetHalf; of validation only if it has samples
};

/// Finds the set that `lockstep convert` is asked for: by name, or by a directory with a user's files.
/// Returns how to load it. Nothing: neither.
std::optional<DatasetOptions> find_whole_set(const std::string& name_or_directory);

/// Any set of images, sample after sample in its order, with the names of its pictures where they are known.
/// @throws as load_dataset and ShardWriter; UsageError  it has no images; DataError  a list of names is damaged
ShardIndex write_in_shards(Env& env, const DatasetOptions& set, const std::string& directory,
                           ShardWriter::Options options);

}  // namespace lockstep
