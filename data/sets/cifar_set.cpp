// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading records of label and image, and Python's pickles of the same.
#include "data/sets/cifar_set.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/sets/names.hpp"
#include "data/sets/pickle.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Record after record, so that memory grows with what is there, and not with what a file may claim.
CifarRecords read_records(ByteSource& source, const CifarLayout& layout) {
  CifarRecords records;
  records.images.reserve(std::min(source.worth_reserving(), kMaxIdxBytes));
  std::vector<std::uint8_t> record(layout.record_bytes());
  for (;;) {
    const std::uint64_t at = source.offset();
    const std::size_t count = source.read(record);
    if (count == 0) break;
    if (count < record.size())
      fail_at(source, at,
              fmt::format("the last record has {} of {} bytes: truncated, or not of this format", count,
                          record.size()));
    const std::uint8_t label = record[layout.label_bytes - 1];
    if (label >= layout.classes)
      fail_at(source, at + layout.label_bytes - 1,
              fmt::format("label {} is not in 0..{}", label, layout.classes - 1));
    if (records.images.size() + layout.features > kMaxIdxBytes)
      fail_at(source, at, fmt::format("more than {} bytes of images", kMaxIdxBytes));
    records.labels.push_back(label);
    records.images.insert(records.images.end(),
                          record.begin() + static_cast<std::ptrdiff_t>(layout.label_bytes), record.end());
  }
  if (records.labels.empty()) fail_at(source, 0, "no records");
  return records;
}

// The version for Python: a dictionary with the array "data" of [sample][features] and a list of labels.

bool is_pickled(const fs::path& path) {
  const fs::path plain = path.extension() == ".gz" ? path.stem() : path;
  return plain.extension() != ".bin";
}

/// Memory grows with what is there.
std::vector<std::uint8_t> read_all(ByteSource& source) {
  constexpr std::uint64_t kPiece = std::uint64_t{16} << 20;
  std::vector<std::uint8_t> bytes;
  for (std::size_t have = 0;;) {
    bytes.resize(have + std::min(kPiece, source.remaining_at_most()));
    const std::size_t count = source.read(std::span(bytes).subspan(have));
    have += count;
    if (have > kMaxIdxBytes) fail_at(source, have, fmt::format("more than {} bytes", kMaxIdxBytes));
    if (count > 0) continue;
    bytes.resize(have);
    return bytes;
  }
}

std::vector<std::uint8_t> read_pickled_file(const fs::path& path) {
  FileSource source(path);
  return parse_inflated(source, read_all);
}

/// Names of classes beside the pickles; nothing: they are not there.
std::vector<std::string> pickled_class_names(const SetEntry& set, const SetFiles& files, bool is_fine) {
  if (set.pickled_names.empty() || !is_pickled(files.files.front())) return {};
  const fs::path path = find_one_of(files.directory, {set.pickled_names});
  if (path.empty()) return {};
  const auto file = read_pickled_file(path);
  const Pickle pickle(file, path.string());
  auto names = pickle.texts_at(is_fine ? "fine_label_names" : "label_names");
  for (const std::string& name : names)
    if (const char* trouble = trouble_with_class_name(name))
      pickle.fail(fmt::format("the class name {} {}", quoted_text(name), trouble));
  if (names.empty() || names.size() > kMostClasses)
    pickle.fail(fmt::format("{} names of classes, and there may be 1 to {}", names.size(), kMostClasses));
  return names;
}

std::future<CifarRecords> start_reading(const fs::path& path, const CifarLayout& layout) {
  return start_async([path, layout] {
    if (is_pickled(path)) return parse_pickled_cifar(read_pickled_file(path), path.string(), layout);
    FileSource source(path);
    return parse_cifar(source, layout);
  });
}

/// One after another.
Dataset combine(std::string name, const SetEntry& set, std::size_t classes, std::vector<CifarRecords> parts) {
  Dataset half{.name = std::move(name), .shape = set.shape, .classes = static_cast<int>(classes)};
  std::uint64_t bytes = 0;
  for (const CifarRecords& part : parts) bytes = checked_sum(bytes, part.images.size());
  if (bytes > kMaxIdxBytes)
    throw DataError(fmt::format("{}: {} bytes of images, more than {}", half.name, bytes, kMaxIdxBytes));
  require_memory(bytes, "the data set " + set.name, "use a machine with more memory");
  half.images = AlignedBuffer<std::uint8_t>(bytes);
  std::uint8_t* out = half.images.data();
  for (CifarRecords& part : parts) {
    out = std::copy(part.images.begin(), part.images.end(), out);
    half.labels.insert(half.labels.end(), part.labels.begin(), part.labels.end());
    part = {};
  }
  return half;
}

}  // namespace

/// No set has so many classes that its first byte would be taken for that of a compressed file.
CifarRecords parse_cifar(ByteSource& file, const CifarLayout& layout) {
  return parse_inflated(file, [&](ByteSource& source) { return read_records(source, layout); });
}

CifarRecords parse_pickled_cifar(std::span<const std::uint8_t> file, const std::string& name,
                                 const CifarLayout& layout) {
  const Pickle pickle(file, name);
  const char* key = layout.label_bytes > 1 ? "fine_labels" : "labels";
  const PickledValue& data = pickle.at("data");
  if (data.kind != PickledValue::Kind::kArray || data.item != 1 || data.is_signed || data.dims.size() != 2 ||
      static_cast<std::size_t>(data.dims[1]) != layout.features)
    pickle.fail(fmt::format("holds no array of uint8 with {} columns under 'data'", layout.features));
  const auto labels = pickle.numbers_at(key);
  const auto samples = static_cast<std::size_t>(data.dims[0]);
  if (labels.size() != samples)
    pickle.fail(fmt::format("{} for {}", counted(labels.size(), "label"), counted(samples, "image")));
  CifarRecords records{.labels = {}, .images = {data.text.begin(), data.text.end()}};
  for (std::size_t i = 0; i < samples; ++i) {
    if (labels[i] < 0 || labels[i] >= static_cast<std::int64_t>(layout.classes))
      pickle.fail(fmt::format("label {} of image {} is not in 0..{}", labels[i], i, layout.classes - 1));
    records.labels.push_back(static_cast<std::int32_t>(labels[i]));
    if (!data.is_fortran) continue;
    for (std::size_t p = 0; p < layout.features; ++p)
      records.images[i * layout.features + p] = static_cast<std::uint8_t>(data.text[p * samples + i]);
  }
  return records;
}

std::vector<FileNames> cifar_set_files(const SetEntry& set) {
  std::vector<FileNames> files;
  for (const std::string& name : set.files) files.push_back({name, fs::path(name).stem().string()});
  return files;
}

TrainTestData load_cifar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& /*options*/) {
  const bool is_fine = set.format == "cifar-fine";
  TrainTestData data;
  data.class_names = pickled_class_names(set, files, is_fine);
  if (data.class_names.empty())
    data.class_names = files.names.empty() ? set.class_names : read_class_names(files.names);
  const std::size_t classes = data.class_names.size();
  const CifarLayout layout{is_fine ? 2U : 1U, static_cast<std::size_t>(set.shape.features()), classes};
  std::vector<std::future<CifarRecords>> readings;
  for (const fs::path& file : files.files) readings.push_back(start_reading(file, layout));
  std::vector<CifarRecords> train, test;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const bool is_for_testing = files.files[i].filename().string().starts_with("test");
    (is_for_testing ? test : train).push_back(readings[i].get());
  }
  data.train = combine(set.name + " train", set, classes, std::move(train));
  data.test = combine(set.name + " test", set, classes, std::move(test));
  return data;
}

}  // namespace lockstep
