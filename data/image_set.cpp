// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loading the four IDX files of an image set.
#include "data/image_set.hpp"

#include "common/error.hpp"
#include "data/idx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFix = "fetch it again with launch/get-data";

/// A file together with where it came from, for messages.
struct LoadedFile {
  fs::path path;
  IdxArray array;
};

/// One read in a thread of its own; get() throws what it threw.
std::future<LoadedFile> start_reading(const fs::path& path, std::size_t dims, const char* what) {
  return std::async(std::launch::async, [path, dims, what] {
    LoadedFile file{path, read_idx(path)};
    if (file.array.dims.size() == dims) return file;
    throw DataError(fmt::format("{}: offset 3: {} dimensions, expected {} for {}; is it the right file?",
                                path.string(), file.array.dims.size(), dims, what));
  });
}

std::vector<std::int32_t> checked_labels(const LoadedFile& file) {
  const auto bytes = file.array.bytes.span();
  const auto bad =
      std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t label) { return label >= kImageSetClasses; });
  if (bad != bytes.end()) {
    const auto offset = file.array.data_offset() + static_cast<std::uint64_t>(bad - bytes.begin());
    throw DataError(fmt::format("{}: offset {}: label {} is not in 0..{}; {}", file.path.string(), offset,
                                *bad, kImageSetClasses - 1, kFix));
  }
  return {bytes.begin(), bytes.end()};
}

Dataset combine(std::string name, LoadedFile images, const LoadedFile& labels) {
  const auto& dims = images.array.dims;
  if (dims[0] != labels.array.dims[0]) {
    throw DataError(
        fmt::format("{}: offset 4: {} images, but {} has {} labels; the two are not of one set, {}",
                    images.path.string(), dims[0], labels.path.string(), labels.array.dims[0], kFix));
  }
  Dataset set;
  set.name = std::move(name);
  set.shape = {1, static_cast<int>(dims[1]), static_cast<int>(dims[2])};
  set.classes = kImageSetClasses;
  set.labels = checked_labels(labels);
  set.images = std::move(images.array.bytes);
  return set;
}

}  // namespace

TrainTestData load_image_set(const std::string& set, const ImageSetFiles& files) {
  auto train_images = start_reading(files.train_images, 3, "images");
  auto train_labels = start_reading(files.train_labels, 1, "labels");
  auto test_images = start_reading(files.test_images, 3, "images");
  auto test_labels = start_reading(files.test_labels, 1, "labels");
  TrainTestData data;
  LoadedFile images = train_images.get();
  data.train = combine(set + " train", std::move(images), train_labels.get());
  images = test_images.get();
  data.test = combine(set + " test", std::move(images), test_labels.get());
  data.directory = files.directory.string();
  data.origin = data.directory;
  if (data.train.shape == data.test.shape) return data;
  throw DataError(fmt::format("{}: offset 8: images of {} x {}, but those of {} are {} x {}; {}",
                              files.test_images.string(), data.test.shape.height, data.test.shape.width,
                              files.train_images.string(), data.train.shape.height, data.train.shape.width,
                              kFix));
}

}  // namespace lockstep
