// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loading the four IDX files of an image set.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <string>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Advice about files that do not fit.
std::string fix_for(const SetEntry& set) {
  return set.is_known_by_name() ? "fetch it again with " + script_command("get-data") : "make the set again";
}

/// A file together with where it came from, for messages.
struct LoadedFile {
  fs::path path;
  IdxArray array;
};

/// How many dimensions a file may have, and what it is called in messages.
struct Expected {
  std::size_t fewest, most;
  const char* text;
};

constexpr Expected kLabels{1, 1, "1 for labels; of samples with several, use shards (docs/shard-format.md)"};
constexpr Expected kImages{3, 3, "3 for images"};
constexpr Expected kImagesWithChannels{3, 4, "3 for images, or 4 where they have channels"};

Expected images_of(const SetEntry& set) {
  return set.is_known_by_name() ? kImages : kImagesWithChannels;
}

void check_dimensions(const fs::path& path, const std::vector<std::int64_t>& dims, const Expected& expected) {
  if (dims.size() >= expected.fewest && dims.size() <= expected.most) return;
  throw DataError(fmt::format("{}: offset 3: {}, expected {}; is it the right file?", path.string(),
                              counted(dims.size(), "dimension"), expected.text));
}

/// Reads a file on a new thread; get() throws what it threw.
std::future<LoadedFile> start_reading(const fs::path& path, Expected expected) {
  return start_async([path, expected] {
    LoadedFile file{path, read_idx(path)};
    check_dimensions(path, file.array.dims, expected);
    return file;
  });
}

void check_labels(const LoadedFile& file, std::size_t classes, const std::string& fix) {
  const auto bytes = file.array.bytes.span();
  const auto bad = std::ranges::find_if(bytes, [&](std::uint8_t label) { return label >= classes; });
  if (bad == bytes.end()) return;
  const auto offset = file.array.data_offset() + static_cast<std::uint64_t>(bad - bytes.begin());
  throw DataError(fmt::format("{}: offset {}: label {} is not in 0..{}; {}", file.path.string(), offset, *bad,
                              classes - 1, fix));
}

/// @param read  files of the set, with all that hold labels
std::vector<std::string> names_of(const SetEntry& set, const SetFiles& files,
                                  std::span<const LoadedFile> read) {
  if (!files.names.empty()) return read_class_names(files.names);
  if (!set.class_names.empty()) return set.class_names;
  std::uint8_t largest = 0;
  for (const LoadedFile& file : read)
    if (file.array.dims.size() == 1) largest = std::max(largest, std::ranges::max(file.array.bytes.span()));
  return numbered_classes(largest + 1);
}

ImageShape shape_of(const std::vector<std::int64_t>& dims) {
  return {dims.size() == 4 ? static_cast<int>(dims[3]) : 1, static_cast<int>(dims[1]),
          static_cast<int>(dims[2])};
}

Dataset combine(std::string name, LoadedFile images, const LoadedFile& labels, std::size_t classes,
                const SetEntry& set) {
  const auto& dims = images.array.dims;
  if (dims[0] != labels.array.dims[0])
    throw DataError(fmt::format("{}: offset 4: {}, but {} has {}; the two are not of one set, {}",
                                images.path.string(), counted(dims[0], "image"), labels.path.string(),
                                counted(labels.array.dims[0], "label"), fix_for(set)));
  Dataset half{.name = std::move(name), .shape = shape_of(dims), .classes = static_cast<int>(classes)};
  const auto bytes = labels.array.bytes.span();
  half.labels.assign(bytes.begin(), bytes.end());
  half.images = std::move(images.array.bytes);
  const auto pixels =
      static_cast<std::size_t>(half.shape.height) * static_cast<std::size_t>(half.shape.width);
  separate_channels(half.images.span(), pixels, half.shape.channels);
  return half;
}

/// The files of a half.
struct HalfFiles {
  SetHalf half;
  fs::path images, labels;
};

/// Finds the files of the validation half as far as they are there.
HalfFiles validation_files_in(const fs::path& directory, const SetEntry& set) {
  HalfFiles files{SetHalf::kValidation, {}, {}};
  if (set.is_known_by_name()) return files;
  const auto names = idx_validation_files();
  files.images = find_one_of(directory, names[0]);
  files.labels = find_one_of(directory, names[1]);
  if (files.images.empty() == files.labels.empty()) return files;
  throw DataError(fmt::format("{}: {} has no {} beside it; add that, or remove the one", directory.string(),
                              (files.images.empty() ? files.labels : files.images).filename().string(),
                              names[files.images.empty() ? 0 : 1].front()));
}

/// Those that are to be read.
std::vector<HalfFiles> halves_of(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  std::vector<HalfFiles> halves = {{SetHalf::kTrain, files.files[0], files.files[1]},
                                   {SetHalf::kTest, files.files[2], files.files[3]}};
  const HalfFiles validation = validation_files_in(files.directory, set);
  if (options.validation.is_files && !validation.images.empty()) halves.push_back(validation);
  return halves;
}

void check_shape(const Dataset& half, const HalfFiles& files, const Dataset& train, const HalfFiles& of_train,
                 const SetEntry& set) {
  if (half.shape == train.shape) return;
  throw DataError(fmt::format("{}: offset 8: images of {}, but those of {} are {}; {}", files.images.string(),
                              channels_rows_columns(half.shape), of_train.images.string(),
                              channels_rows_columns(train.shape), fix_for(set)));
}

std::vector<LoadedFile> taken(std::vector<std::future<LoadedFile>>& files) {
  std::vector<LoadedFile> loaded;
  for (auto& file : files) loaded.push_back(file.get());
  return loaded;
}

}  // namespace

std::vector<FileNames> idx_set_files(const SetEntry& set) {
  std::vector<FileNames> files;
  for (const std::string& name : set.files) files.push_back({name});
  if (!files.empty()) return files;
  return {{"train-images-idx3-ubyte", "train-images-idx4-ubyte"},
          {"train-labels-idx1-ubyte", "train-labels-idx2-ubyte"},
          {"t10k-images-idx3-ubyte", "t10k-images-idx4-ubyte", "test-images-idx3-ubyte",
           "test-images-idx4-ubyte"},
          {"t10k-labels-idx1-ubyte", "t10k-labels-idx2-ubyte", "test-labels-idx1-ubyte",
           "test-labels-idx2-ubyte"}};
}

std::vector<FileNames> idx_validation_files() {
  return {{"validation-images-idx3-ubyte", "validation-images-idx4-ubyte"},
          {"validation-labels-idx1-ubyte", "validation-labels-idx2-ubyte"}};
}

SetOutline outline_of_idx_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  const auto halves = halves_of(set, files, options);
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<std::future<LoadedFile>> reading;
  for (const HalfFiles& half : halves) {
    check_dimensions(half.images, dims.emplace_back(read_idx_dims(half.images)), images_of(set));
    reading.push_back(start_reading(half.labels, kLabels));
  }
  const auto labels = taken(reading);
  return {.shape = shape_of(dims[0]),
          .classes = static_cast<int>(names_of(set, files, labels).size()),
          .train_samples = dims[0][0],
          .test_samples = dims[1][0],
          .validation_samples = dims.size() > 2 ? dims[2][0] : 0};
}

TrainTestData load_idx_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  const auto halves = halves_of(set, files, options);
  std::vector<std::future<LoadedFile>> reading;  // images, labels, images, labels ...
  for (const HalfFiles& half : halves) {
    reading.push_back(start_reading(half.images, images_of(set)));
    reading.push_back(start_reading(half.labels, kLabels));
  }
  auto read = taken(reading);
  TrainTestData data;
  data.class_names = names_of(set, files, read);
  data.has_validation_half = !validation_files_in(files.directory, set).images.empty();
  const std::size_t classes = data.class_names.size();
  const std::string fix = files.names.empty() ? fix_for(set)
                                              : fmt::format("give all classes a line in {}, or {}",
                                                            files.names.string(), fix_for(set));
  for (std::size_t i = 0; i < halves.size(); ++i) {
    Dataset& half = data.half(halves[i].half);
    const LoadedFile& labels = read[2 * i + 1];
    half = combine(fmt::format("{} {}", set.name, name_of(halves[i].half)), std::move(read[2 * i]), labels,
                   classes, set);
    check_labels(labels, classes, fix);
    check_shape(half, halves[i], data.train, halves.front(), set);
  }
  return data;
}

}  // namespace lockstep
