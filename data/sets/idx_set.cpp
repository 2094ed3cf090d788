// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loading the four IDX files of an image set.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/text_layout.hpp"
#include "common/threads.hpp"
#include "data/byte_source.hpp"
#include "data/class_names.hpp"
#include "data/idx.hpp"
#include "data/sets/set_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

enum FileOfSet : std::size_t { kTrainImages, kTrainLabels, kTestImages, kTestLabels };

/// What to do about files that do not fit.
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

constexpr Expected kLabels{1, 1, "1 for labels"};
constexpr Expected kImages{3, 3, "3 for images"};
constexpr Expected kImagesWithChannels{3, 4, "3 for images, or 4 where they have channels"};

Expected images_of(const SetEntry& set) {
  return set.is_known_by_name() ? kImages : kImagesWithChannels;
}

void check_dimensions(const fs::path& path, const std::vector<std::int64_t>& dims, const Expected& expected) {
  if (dims.size() >= expected.fewest && dims.size() <= expected.most) return;
  throw DataError(fmt::format("{}: offset 3: {} dimensions, expected {}; is it the right file?",
                              path.string(), dims.size(), expected.text));
}

/// One read in a thread of its own; get() throws what it threw.
std::future<LoadedFile> start_reading(const fs::path& path, Expected expected) {
  return start_async([path, expected] {
    LoadedFile file{path, read_idx(path)};
    check_dimensions(path, file.array.dims, expected);
    return file;
  });
}

void check_labels(const LoadedFile& file, std::size_t classes, const SetEntry& set) {
  const auto bytes = file.array.bytes.span();
  const auto bad =
      std::find_if(bytes.begin(), bytes.end(), [&](std::uint8_t label) { return label >= classes; });
  if (bad == bytes.end()) return;
  const auto offset = file.array.data_offset() + static_cast<std::uint64_t>(bad - bytes.begin());
  throw DataError(fmt::format("{}: offset {}: label {} is not in 0..{}; {}", file.path.string(), offset, *bad,
                              classes - 1, fix_for(set)));
}

std::size_t largest_label(const LoadedFile& file) {
  const auto bytes = file.array.bytes.span();
  return *std::max_element(bytes.begin(), bytes.end());
}

std::vector<std::string> names_of(const SetEntry& set, const SetFiles& files, const LoadedFile& train_labels,
                                  const LoadedFile& test_labels) {
  if (!files.names.empty()) return read_class_names(files.names);
  if (!set.class_names.empty()) return set.class_names;
  const std::size_t largest = std::max(largest_label(train_labels), largest_label(test_labels));
  return numbered_classes(static_cast<int>(largest) + 1);
}

ImageShape shape_of(const std::vector<std::int64_t>& dims) {
  return {dims.size() == 4 ? static_cast<int>(dims[3]) : 1, static_cast<int>(dims[1]),
          static_cast<int>(dims[2])};
}

Dataset combine(std::string name, LoadedFile images, const LoadedFile& labels, std::size_t classes,
                const SetEntry& set) {
  const auto& dims = images.array.dims;
  if (dims[0] != labels.array.dims[0]) {
    throw DataError(fmt::format("{}: offset 4: {}, but {} has {}; the two are not of one set, {}",
                                images.path.string(), counted(dims[0], "image"), labels.path.string(),
                                counted(labels.array.dims[0], "label"), fix_for(set)));
  }
  check_labels(labels, classes, set);
  Dataset half;
  half.name = std::move(name);
  half.shape = shape_of(images.array.dims);
  half.classes = static_cast<int>(classes);
  const auto bytes = labels.array.bytes.span();
  half.labels = {bytes.begin(), bytes.end()};
  half.images = std::move(images.array.bytes);
  const auto pixels =
      static_cast<std::size_t>(half.shape.height) * static_cast<std::size_t>(half.shape.width);
  separate_channels(half.images.span(), pixels, half.shape.channels);
  return half;
}

std::string text_of(const ImageShape& shape) {
  const std::string size = fmt::format("{} x {}", shape.height, shape.width);
  return shape.channels == 1 ? size : fmt::format("{} x {}", size, shape.channels);
}

void check_shapes(const TrainTestData& data, const SetFiles& files, const SetEntry& set) {
  if (data.train.shape == data.test.shape) return;
  throw DataError(fmt::format("{}: offset 8: images of {}, but those of {} are {}; {}",
                              files.files[kTestImages].string(), text_of(data.test.shape),
                              files.files[kTrainImages].string(), text_of(data.train.shape), fix_for(set)));
}

}  // namespace

std::vector<FileNames> idx_set_files(const SetEntry& set) {
  std::vector<FileNames> files;
  for (const std::string& name : set.files) files.push_back({name});
  if (!files.empty()) return files;
  return {{"train-images-idx3-ubyte", "train-images-idx4-ubyte"},
          {"train-labels-idx1-ubyte"},
          {"t10k-images-idx3-ubyte", "t10k-images-idx4-ubyte", "test-images-idx3-ubyte",
           "test-images-idx4-ubyte"},
          {"t10k-labels-idx1-ubyte", "test-labels-idx1-ubyte"}};
}

SetOutline outline_of_idx_set(const SetEntry& set, const SetFiles& files) {
  const auto train = read_idx_dims(files.files[kTrainImages]), test = read_idx_dims(files.files[kTestImages]);
  check_dimensions(files.files[kTrainImages], train, images_of(set));
  auto train_labels = start_reading(files.files[kTrainLabels], kLabels);
  auto test_labels = start_reading(files.files[kTestLabels], kLabels);
  const LoadedFile of_train = train_labels.get(), of_test = test_labels.get();
  return {.shape = shape_of(train),
          .classes = static_cast<int>(names_of(set, files, of_train, of_test).size()),
          .train_samples = train[0],
          .test_samples = test[0]};
}

TrainTestData load_idx_set(const SetEntry& set, const SetFiles& files) {
  auto train_images = start_reading(files.files[kTrainImages], images_of(set));
  auto train_labels = start_reading(files.files[kTrainLabels], kLabels);
  auto test_images = start_reading(files.files[kTestImages], images_of(set));
  auto test_labels = start_reading(files.files[kTestLabels], kLabels);
  LoadedFile of_train = train_images.get();
  const LoadedFile labels_of_train = train_labels.get();
  LoadedFile of_test = test_images.get();
  const LoadedFile labels_of_test = test_labels.get();
  TrainTestData data;
  data.class_names = names_of(set, files, labels_of_train, labels_of_test);
  const std::size_t classes = data.class_names.size();
  data.train = combine(set.name + " train", std::move(of_train), labels_of_train, classes, set);
  data.test = combine(set.name + " test", std::move(of_test), labels_of_test, classes, set);
  check_shapes(data, files, set);
  return data;
}

}  // namespace lockstep
