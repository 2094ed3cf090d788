// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Opening a set in shards: its index, labels and digests are read and checked. Its images stay where they are, and so
/// do the fp32 features of a large table; those of a small one are read into memory.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"
#include "data/sample_store.hpp"
#include "data/sets/class_names.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"
#include "data/sets/table_columns.hpp"
#include "data/stored_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// @throws DataError  also if the set is of the other kind, which has another name
ShardIndex read_index(const fs::path& path, const SetEntry& set) {
  const auto text = Env::posix().read_first(path.string(), kMostShardIndexBytes + 1);
  ShardIndex index = parse_shard_index(as_text(text), path.string());
  if (index.is_fp32 == set.is_fp32) return index;
  throw DataError(
      index.is_fp32
          ? fmt::format("{}: a table's numbers, and no pictures; say data.set=table", path.string())
          : fmt::format("{}: pictures, and no table's numbers; say data.set=shards", path.string()));
}

/// Reads as many numbers as the index says. @param digest  the file's
template <typename Number>
std::vector<Number> read_numbers(const fs::path& path, std::uint64_t count, const Sha256Digest& digest) {
  static_assert(std::endian::native == std::endian::little);
  FileSource source(path);
  if (source.remaining_at_most() != count * sizeof(Number))
    throw DataError(fmt::format("{}: {} {}, and the index says {}; {}", path.string(),
                                source.remaining_at_most(), plural(source.remaining_at_most(), "byte"),
                                count * sizeof(Number), kFixForStore));
  std::vector<Number> numbers(count);
  const std::span bytes(reinterpret_cast<std::uint8_t*>(numbers.data()), count * sizeof(Number));
  if (source.read(bytes) != bytes.size() || sha256(std::as_bytes(bytes)) != digest)
    throw DataError(
        fmt::format("{}: its SHA-256 is not the one in the index; {}", path.string(), kFixForStore));
  return numbers;
}

/// For each sample how many labels, and these in their order. @returns rows of `sets`
std::vector<std::int32_t> read_label_sets(const fs::path& path, const ShardIndex& index,
                                          const ShardHalf& half, LabelSets& sets) {
  const auto numbers = read_numbers<std::uint32_t>(
      path, static_cast<std::uint64_t>(half.samples) + static_cast<std::uint64_t>(half.label_count),
      half.labels);
  std::vector<std::int32_t> rows;
  std::span<const std::uint32_t> rest(numbers);
  while (!rest.empty() && std::ssize(rows) < half.samples) {
    const std::size_t count = rest.front();
    rest = rest.subspan(1);
    const auto labels = rest.first(std::min(count, rest.size()));
    const bool is_ascending = std::ranges::is_sorted(labels, std::less_equal());
    if (count > rest.size() || !is_ascending || (count > 0 && labels.back() >= index.classes))
      throw DataError(
          fmt::format("{}: the labels of sample {} are not {} different ones in 0..{}, ascending; {}",
                      path.string(), rows.size(), count, index.classes - 1, kFixForStore));
    rows.push_back(sets.row_of(labels));
    rest = rest.subspan(count);
  }
  if (rest.empty() && std::ssize(rows) == half.samples) return rows;
  throw DataError(fmt::format("{}: holds labels of {} samples than the {} that there are; {}", path.string(),
                              rest.empty() ? "fewer" : "more", half.samples, kFixForStore));
}

std::vector<std::int32_t> read_labels(const fs::path& path, const ShardIndex& index, const ShardHalf& half) {
  auto labels = read_numbers<std::int32_t>(path, static_cast<std::uint64_t>(half.samples), half.labels);
  const auto bad =
      std::ranges::find_if(labels, [&](std::int32_t label) { return label < 0 || label >= index.classes; });
  if (bad != labels.end())
    throw DataError(fmt::format("{}: label {} of sample {} is not in 0..{}; {}", path.string(),
                                static_cast<std::uint32_t>(*bad), bad - labels.begin(), index.classes - 1,
                                kFixForStore));
  return labels;
}

/// By the digests of its blocks: no image is read.
Fingerprint fingerprint_of(const ShardIndex& index, const ShardHalf& half) {
  const ImageShape& shape = index.shape;
  const std::string samples = fmt::format(
      "{} {} of {}x{}x{}, blocks of {}: {}", half.samples, index.is_fp32 ? "fp32 samples" : "images",
      shape.channels, shape.height, shape.width, index.sizes.block_bytes, hex(half.blocks));
  return {.samples = hex(sha256(std::as_bytes(std::span(samples)))), .labels = hex(half.labels)};
}

/// All of a half; with that each block was compared with its digest.
AlignedBuffer<float> read_features(const SampleStore& store, const ShardIndex& index,
                                   const fs::path& directory) {
  static_assert(std::endian::native == std::endian::little);
  const auto each = static_cast<std::size_t>(index.shape.features());
  const auto samples = static_cast<std::size_t>(store.size());
  require_memory(checked_product(samples, each, sizeof(float)), "the table in " + directory.string(),
                 "convert fewer rows or columns of it");
  AlignedBuffer<float> features(samples * each);
  std::vector<std::int64_t> all(samples);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  store.read(all, {reinterpret_cast<std::uint8_t*>(features.data()), samples * each * sizeof(float)});
  const auto numbers = features.span();
  const auto bad = std::ranges::find_if(numbers, [](float value) { return !std::isfinite(value); });
  if (bad == numbers.end()) return features;
  const auto at = static_cast<std::size_t>(bad - numbers.begin());
  throw DataError(fmt::format("{}: value {} of sample {} is {}, no finite number; {}", directory.string(),
                              at % each, at / each, *bad, kFixForStore));
}

/// The places of the numbers of a sample that are asked for, by name. Empty: in their places, or columns have no names.
std::vector<std::size_t> places_of_columns(const ShardIndex& index, const DatasetOptions& options,
                                           const std::string& directory) {
  if (index.columns.empty() || options.columns.empty()) return {};
  const auto own = names_of_numbers(parse_table_columns(index.columns, directory)),
             wanted = names_of_numbers(parse_table_columns(options.columns, "data.columns"));
  if (own == wanted || own.empty() || wanted.empty()) return {};
  const ClassMatch match = match_classes(own, wanted);
  if (!match.unknown.empty())
    throw DataError(
        fmt::format("{}: has no column {}, only {}; convert the table with the columns that are asked for",
                    directory, first_names(match.unknown), first_names(own)));
  if (!match.missing.empty())
    throw DataError(fmt::format("{}: has columns that are not asked for: {}; convert the table without them",
                                directory, first_names(match.missing)));
  return {match.places.begin(), match.places.end()};
}

void reorder_columns(std::span<float> features, std::span<const std::size_t> places) {
  std::vector<float> row(places.size());
  for (; !features.empty(); features = features.subspan(places.size())) {
    std::ranges::transform(places, row.begin(), [&](std::size_t place) { return features[place]; });
    std::ranges::copy(row, features.begin());
  }
}

/// Images always may; tables are quicker in memory, where they are small.
bool stays_on_disk(const ShardIndex& index) {
  constexpr std::uint64_t kSmallTable = std::uint64_t{64} << 20;
  return !index.is_fp32 || index.bytes_of(index.train) + index.bytes_of(index.test) > kSmallTable;
}

/// @param sets  used where samples have several labels; otherwise null
Dataset open_half(const fs::path& directory, SetHalf which, const ShardIndex& index, const ShardHalf& half,
                  LabelSets* sets, bool in_memory) {
  const char* name = name_of(which);
  const std::uint64_t bytes = index.bytes_of(half);
  const auto parts_of = [bytes](std::uint64_t size) { return (bytes + size - 1) / size; };
  ShardStore::Contents contents{
      .samples = half.samples,
      .sample_bytes = index.sample_bytes(),
      .block_bytes = index.sizes.block_bytes,
      .file_bytes = index.sizes.shard_bytes,
      .blocks = read_numbers<Sha256Digest>(directory / shard_blocks_file(name),
                                           parts_of(index.sizes.block_bytes), half.blocks),
      .sums = half.sums};
  for (std::uint64_t i = 0; i < parts_of(index.sizes.shard_bytes); ++i)
    contents.files.push_back(directory / shard_file(name, i));
  Dataset set{.name = fmt::format("{} {}", index.is_fp32 ? "table" : "shards", name),
              .shape = index.shape,
              .classes = static_cast<int>(index.classes)};
  const fs::path labels = directory / shard_labels_file(name);
  set.labels =
      sets != nullptr ? read_label_sets(labels, index, half, *sets) : read_labels(labels, index, half);
  if (index.is_fp32 && (in_memory || !stays_on_disk(index))) {
    set.features = read_features(ShardStore(std::move(contents)), index, directory);
  } else {
    (index.is_fp32 ? set.rows : set.store) = std::make_shared<const ShardStore>(std::move(contents));
  }
  set.file_fingerprint = fingerprint_of(index, half);
  return set;
}

}  // namespace

SetOutline outline_of_shard_set(const SetEntry& set, const SetFiles& files,
                                const DatasetOptions& /*options*/) {
  const ShardIndex index = read_index(files.files.front(), set);
  return {.shape = index.shape,
          .classes = static_cast<int>(index.classes),
          .train_samples = index.train.samples,
          .test_samples = index.test.samples,
          .validation_samples = index.validation.samples,
          .is_fp32 = index.is_fp32,
          .on_disk = stays_on_disk(index)};
}

TrainTestData load_shard_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  const ShardIndex index = read_index(files.files.front(), set);
  std::optional<LabelSets> sets;
  if (index.has_label_sets) sets.emplace(static_cast<std::size_t>(index.classes), files.directory.string());
  const auto places = places_of_columns(index, options, files.directory.string());
  const auto open = [&](SetHalf which, const ShardHalf& half) {
    Dataset opened = open_half(files.directory, which, index, half, sets ? &*sets : nullptr,
                               options.in_memory || !places.empty());
    if (!places.empty()) reorder_columns(opened.features.span(), places);
    return opened;
  };
  TrainTestData data;
  data.train = open(SetHalf::kTrain, index.train);
  data.test = open(SetHalf::kTest, index.test);
  data.has_validation_half = index.validation.samples > 0;
  if (data.has_validation_half && options.validation.is_files)
    data.validation = open(SetHalf::kValidation, index.validation);
  if (sets) sets->give_to(data);
  data.columns = index.columns;
  data.class_names =
      index.class_names.empty() ? numbered_classes(static_cast<int>(index.classes)) : index.class_names;
  return data;
}

}  // namespace lockstep
