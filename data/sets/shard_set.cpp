// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Opening a set in shards: its index, labels and digests are read and checked. Its images stay where they are; fp32
/// features are read into memory.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/byte_source.hpp"
#include "data/class_names.hpp"
#include "data/sample_store.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// @throws DataError  also if the set is of the other kind, which has another name
ShardIndex read_index(const fs::path& path, const SetEntry& set) {
  FileSource source(path);
  std::vector<std::uint8_t> text(std::min(source.remaining_at_most(), kMostShardIndexBytes + 1));
  text.resize(source.read(text));
  ShardIndex index =
      parse_shard_index({reinterpret_cast<const char*>(text.data()), text.size()}, path.string());
  if (index.is_fp32 == set.is_fp32) return index;
  throw DataError(
      index.is_fp32
          ? fmt::format("{}: a table's numbers, and no pictures; say data.set=table", path.string())
          : fmt::format("{}: pictures, and no table's numbers; say data.set=shards", path.string()));
}

/// So many numbers, as the index says. @param digest  of the file
template <typename Number>
std::vector<Number> read_numbers(const fs::path& path, std::uint64_t count, const Sha256Digest& digest) {
  static_assert(std::endian::native == std::endian::little);
  FileSource source(path);
  if (source.remaining_at_most() != count * sizeof(Number))
    throw DataError(fmt::format("{}: {} bytes, and the index says {}; {}", path.string(),
                                source.remaining_at_most(), count * sizeof(Number), kFixForStore));
  std::vector<Number> numbers(count);
  const std::span bytes(reinterpret_cast<std::uint8_t*>(numbers.data()), count * sizeof(Number));
  if (source.read(bytes) != bytes.size() || sha256(std::as_bytes(bytes)) != digest)
    throw DataError(
        fmt::format("{}: its SHA-256 is not the one in the index; {}", path.string(), kFixForStore));
  return numbers;
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

Dataset open_half(const fs::path& directory, std::string_view name, const ShardIndex& index,
                  const ShardHalf& half) {
  const std::uint64_t bytes = index.bytes_of(half);
  const auto parts_of = [bytes](std::uint64_t size) { return (bytes + size - 1) / size; };
  ShardStore::Contents contents{
      .files = {},
      .samples = half.samples,
      .sample_bytes = index.sample_bytes(),
      .block_bytes = index.sizes.block_bytes,
      .file_bytes = index.sizes.shard_bytes,
      .blocks = read_numbers<Sha256Digest>(directory / shard_blocks_file(name),
                                           parts_of(index.sizes.block_bytes), half.blocks),
      .sums = {.values = half.values, .squares = half.squares}};
  for (std::uint64_t i = 0; i < parts_of(index.sizes.shard_bytes); ++i)
    contents.files.push_back(directory / shard_file(name, i));
  Dataset set;
  set.name = fmt::format("{} {}", index.is_fp32 ? "table" : "shards", name);
  set.shape = index.shape;
  set.classes = static_cast<int>(index.classes);
  set.labels = read_labels(directory / shard_labels_file(name), index, half);
  if (index.is_fp32) {
    set.features = read_features(ShardStore(std::move(contents)), index, directory);
  } else {
    set.store = std::make_shared<const ShardStore>(std::move(contents));
  }
  set.file_fingerprint = fingerprint_of(index, half);
  return set;
}

}  // namespace

std::vector<FileNames> shard_set_files(const SetEntry& /*set*/) {
  return {{kShardIndexFile}};
}

SetOutline outline_of_shard_set(const SetEntry& set, const SetFiles& files, const PictureForm& /*form*/) {
  const ShardIndex index = read_index(files.files.front(), set);
  return {.shape = index.shape,
          .classes = static_cast<int>(index.classes),
          .train_samples = index.train.samples,
          .test_samples = index.test.samples,
          .is_fp32 = index.is_fp32,
          .on_disk = !index.is_fp32};
}

TrainTestData load_shard_set(const SetEntry& set, const SetFiles& files, const PictureForm& /*form*/) {
  const ShardIndex index = read_index(files.files.front(), set);
  TrainTestData data;
  data.train = open_half(files.directory, "train", index, index.train);
  data.test = open_half(files.directory, "test", index, index.test);
  data.class_names =
      index.class_names.empty() ? numbered_classes(static_cast<int>(index.classes)) : index.class_names;
  return data;
}

}  // namespace lockstep
