// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading records of label and image.
#include "data/sets/cifar_set.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/sets/names.hpp"
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

std::future<CifarRecords> start_reading(const fs::path& path, const CifarLayout& layout) {
  return start_async([path, layout] {
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

std::vector<FileNames> cifar_set_files(const SetEntry& set) {
  std::vector<FileNames> files;
  for (const std::string& name : set.files) files.push_back({name});
  return files;
}

TrainTestData load_cifar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& /*options*/) {
  const bool is_fine = set.format == "cifar-fine";
  TrainTestData data;
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
