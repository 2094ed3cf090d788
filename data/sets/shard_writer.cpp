// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ShardWriter: blocks are hashed and written as they fill up. And what writes a set of any format so.
#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_directory.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <string>
#include <utility>

namespace lockstep {

/// A file that is hashed on its way to the disk, in pieces that are worth a call.
class ShardWriter::HashedFile {
 public:
  HashedFile(Env& env, const std::string& path) : file_(env.create(path)) {}

  void write(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kPiece) flush();
  }
  Sha256Digest finish() {
    flush();
    file_->sync();
    file_->close();
    return hash_.finish();
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{64} << 10;

  void flush() {
    hash_.update(buffer_);
    file_->write(buffer_);
    buffer_.clear();
  }

  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
  Sha256 hash_;
};

namespace {

/// With a sum of 0 for each channel of images.
ShardHalf empty_half(const ShardIndex& index) {
  return {.sums = no_pixels(index.is_fp32 ? 0 : std::max(0, index.shape.channels))};
}

}  // namespace

class ShardWriter::Half {
 public:
  /// @param index  of the set; must outlive this
  Half(Env& env, SetDirectory& directory, std::string name, const ShardIndex& index)
      : env_(env),
        directory_(directory),
        name_(std::move(name)),
        index_(index),
        labels_(env, directory.add(shard_labels_file(name_))),
        blocks_(env, directory.add(shard_blocks_file(name_))),
        found_(empty_half(index)) {
    block_.reserve(index.sizes.block_bytes);
  }

  void add(std::span<const std::uint8_t> sample, std::span<const std::uint32_t> labels,
           const std::filesystem::path& original) {
    LOCKSTEP_CHECK(sample.size() == index_.sample_bytes() && (index_.has_label_sets || labels.size() == 1));
    add_name(original);
    if (!index_.is_fp32) add_pixels(sample, sample.size() / found_.sums.values.size(), found_.sums);
    if (index_.has_label_sets) write_label(static_cast<std::uint32_t>(labels.size()));
    for (const std::uint32_t label : labels) write_label(label);
    if (index_.has_label_sets) found_.label_count += std::ssize(labels);
    for (auto rest = std::as_bytes(sample); !rest.empty();) {
      const std::size_t count = std::min(rest.size(), index_.sizes.block_bytes - block_.size());
      block_.insert(block_.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
      rest = rest.subspan(count);
      if (block_.size() == index_.sizes.block_bytes) write_block();
    }
    ++found_.samples;
  }

  ShardHalf finish() {
    if (found_.samples == 0)
      throw DataError(fmt::format("the set has no samples to {}; it needs some",
                                  name_ == "train" ? "train on" : "test with"));
    if (!block_.empty()) write_block();
    end_shard();
    if (names_) names_->finish();
    found_.labels = labels_.finish();
    found_.blocks = blocks_.finish();
    return found_;
  }

 private:
  void write_label(std::uint32_t number) {
    static_assert(std::endian::native == std::endian::little);
    labels_.write(std::as_bytes(std::span(&number, 1)));
  }

  void add_name(const std::filesystem::path& original) {
    if (found_.samples == 0 && !original.empty())
      names_ = std::make_unique<HashedFile>(env_, directory_.add(sample_names_file(name_)));
    LOCKSTEP_CHECK(original.empty() == (names_ == nullptr));
    if (names_) {
      const std::string line = sample_name_line(original);
      names_->write(std::as_bytes(std::span(line)));
    }
  }

  void write_block() {
    if (shard_ == nullptr) shard_ = env_.create(directory_.add(shard_file(name_, shards_++)));
    shard_->write(block_);
    in_shard_ += block_.size();
    blocks_.write(sha256(block_));
    block_.clear();
    if (in_shard_ == index_.sizes.shard_bytes) end_shard();
  }

  void end_shard() {
    if (shard_ == nullptr) return;
    shard_->sync();
    shard_->close();
    shard_.reset();
    in_shard_ = 0;
  }

  Env& env_;
  SetDirectory& directory_;
  std::string name_;
  const ShardIndex& index_;
  HashedFile labels_, blocks_;
  std::unique_ptr<HashedFile> names_;
  std::unique_ptr<WritableFile> shard_;
  std::uint64_t shards_ = 0, in_shard_ = 0;
  std::vector<std::byte> block_;
  ShardHalf found_;
};

ShardWriter::ShardWriter(Env& env, const std::string& directory, const ImageShape& shape,
                         std::vector<std::string> class_names, const Options& options)
    : env_(env), directory_(env, directory, options.replace) {
  index_.shape = shape;
  index_.is_fp32 = options.is_fp32;
  index_.has_label_sets = options.has_label_sets;
  index_.columns = options.columns;
  index_.classes = std::ssize(class_names);
  index_.class_names = std::move(class_names);
  index_.sizes = options.sizes;
  ShardIndex tried = index_;  // an index that cannot be read is refused before anything is written
  for (ShardHalf* half : {&tried.train, &tried.test}) {
    *half = empty_half(index_);
    half->samples = 1;
  }
  parse_shard_index(to_text(tried), directory);
  if (options.fit != PictureFit::kSqueeze) {
    const std::string text = conversion_text(options.fit);
    write_synced(env_, directory_.add(kConversionFile), std::as_bytes(std::span(text)));
  }
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest}) start(half);
}

ShardWriter::~ShardWriter() = default;

ShardWriter::Half& ShardWriter::start(SetHalf half) {
  auto& started = halves_[static_cast<std::size_t>(half)];
  if (started == nullptr) started = std::make_unique<Half>(env_, directory_, name_of(half), index_);
  return *started;
}

void ShardWriter::add(SetHalf half, std::span<const std::uint8_t> sample,
                      std::span<const std::uint32_t> labels, const std::filesystem::path& original) {
  LOCKSTEP_CHECK(std::ranges::is_sorted(labels, std::less_equal()) &&
                 (labels.empty() || labels.back() < static_cast<std::uint64_t>(index_.classes)));
  start(half).add(sample, labels, original);
}

void ShardWriter::publish() {
  index_.train = start(SetHalf::kTrain).finish();
  index_.test = start(SetHalf::kTest).finish();
  if (const auto& validation = halves_[static_cast<std::size_t>(SetHalf::kValidation)])
    index_.validation = validation->finish();
  const std::string text = to_text(index_);
  parse_shard_index(text, kShardIndexFile);  // a published index can be read
  write_synced(env_, directory_.add(kShardIndexFile), std::as_bytes(std::span(text)));
  directory_.publish();
}

// From a set in any format to one in shards.

namespace {

namespace fs = std::filesystem;

void add_half(const Dataset& half, SetHalf to, const SampleNames& names, ShardWriter& writer) {
  for (std::int32_t i = 0; i < half.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const ImageRows rows(half, {&i, 1});
    const auto labels = half.has_label_sets() ? labels_in(half.label_set_of(i))
                                              : std::vector{static_cast<std::uint32_t>(half.labels[at])};
    writer.add(to, rows[0], labels, names.names.empty() ? fs::path() : fs::path(names.names[at]));
  }
}

/// With its validation half, if it has one.
TrainTestData load_whole(DatasetOptions options) {
  TrainTestData data = load_dataset(options);
  if (!data.has_validation_half) return data;
  options.validation = {.is_files = true};
  return load_dataset(options);
}

}  // namespace

std::optional<DatasetOptions> find_whole_set(const std::string& name_or_directory) {
  std::error_code ignored;
  if (!fs::is_directory(name_or_directory, ignored)) {
    const auto names = set_names();
    if (std::ranges::find(names, name_or_directory) == names.end()) return std::nullopt;
    return DatasetOptions{.set = name_or_directory};
  }
  for (const SetEntry& set : catalogue()) {
    if (set.is_known_by_name() || format_of(set).has_pictures) continue;
    try {
      resolve_data_root(set.name, name_or_directory);
      return DatasetOptions{.set = set.name, .root = name_or_directory};
    } catch (const MissingDataError&) {  // NOLINT(bugprone-empty-catch): the next format's files may be there
    }
  }
  return std::nullopt;
}

ShardIndex write_in_shards(Env& env, const DatasetOptions& set, const std::string& directory,
                           ShardWriter::Options options) {
  TrainTestData data = load_whole(set);
  if (!data.train.has_images())
    throw UsageError(fmt::format("{}: has features, and shards hold images; train on it as it is", set.set));
  options.has_label_sets = data.train.has_label_sets();
  options.fit = data.fit;
  ShardWriter writer(env, directory, data.train.shape, data.class_names, options);
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest, SetHalf::kValidation}) {
    if (data.half(half).size() == 0) continue;
    const SampleNames names = read_sample_names(data, half);
    if (!names.warning.empty()) throw DataError(names.warning);
    add_half(data.half(half), half, names, writer);
  }
  writer.publish();
  return writer.index();
}

}  // namespace lockstep
