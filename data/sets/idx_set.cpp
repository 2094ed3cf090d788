// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loading the four IDX files of an image set.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "data/byte_source.hpp"
#include "data/class_names.hpp"
#include "data/idx.hpp"
#include "data/sets/set_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

enum FileOfSet : std::size_t { kTrainImages, kTrainLabels, kTestImages, kTestLabels };

constexpr std::int64_t kMostClasses = 65'536;  ///< of sets whose samples have several labels

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
constexpr Expected kLabelsOrSets{1, 2, "1 for labels, or 2 where samples have several"};
constexpr Expected kImages{3, 3, "3 for images"};
constexpr Expected kImagesWithChannels{3, 4, "3 for images, or 4 where they have channels"};

Expected images_of(const SetEntry& set) {
  return set.is_known_by_name() ? kImages : kImagesWithChannels;
}

Expected labels_of(const SetEntry& set) {
  return set.is_known_by_name() ? kLabels : kLabelsOrSets;
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

bool has_label_sets(const LoadedFile& labels) {
  return labels.array.dims.size() == 2;
}

/// The two files agree on whether samples have several labels, and of how many classes; their bytes are 0 and 1.
void check_label_sets(const LoadedFile& train, const LoadedFile& test) {
  if (!has_label_sets(train) && !has_label_sets(test)) return;
  if (train.array.dims.size() != test.array.dims.size() || train.array.dims[1] != test.array.dims[1])
    throw DataError(fmt::format("{}: offset 3: labels of {}, but {} has {}; make both alike",
                                test.path.string(), to_string(test.array.dims), train.path.string(),
                                to_string(train.array.dims)));
  if (train.array.dims[1] > kMostClasses)
    throw DataError(fmt::format("{}: offset 8: {} classes, and {} are the most", train.path.string(),
                                with_thousands(train.array.dims[1]), with_thousands(kMostClasses)));
  for (const LoadedFile* file : {&train, &test}) {
    const auto bytes = file->array.bytes.span();
    const auto bad = std::ranges::find_if(bytes, [](std::uint8_t byte) { return byte > 1; });
    if (bad == bytes.end()) continue;
    throw DataError(
        fmt::format("{}: offset {}: {}, where 1 says that the sample has this label, and 0 that it has not",
                    file->path.string(),
                    file->array.data_offset() + static_cast<std::uint64_t>(bad - bytes.begin()), *bad));
  }
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
  if (!files.names.empty()) {
    std::vector<std::string> names = read_class_names(files.names);
    if (has_label_sets(train_labels) && std::ssize(names) != train_labels.array.dims[1])
      throw DataError(fmt::format("{}: {}, but {} has labels of {}; name each once", files.names.string(),
                                  counted(names.size(), "class name"), train_labels.path.string(),
                                  counted(train_labels.array.dims[1], "class")));
    return names;
  }
  if (!set.class_names.empty()) return set.class_names;
  if (has_label_sets(train_labels)) return numbered_classes(static_cast<int>(train_labels.array.dims[1]));
  const std::size_t largest = std::max(largest_label(train_labels), largest_label(test_labels));
  return numbered_classes(static_cast<int>(largest) + 1);
}

ImageShape shape_of(const std::vector<std::int64_t>& dims) {
  return {dims.size() == 4 ? static_cast<int>(dims[3]) : 1, static_cast<int>(dims[1]),
          static_cast<int>(dims[2])};
}

/// Gives each combination of labels a row, in the order in which they come.
class LabelSets {
 public:
  explicit LabelSets(std::size_t classes) : classes_(classes) {}

  std::vector<std::int32_t> rows_of(std::span<const std::uint8_t> bytes) {
    std::vector<std::int32_t> rows;
    rows.reserve(bytes.size() / classes_);
    for (std::size_t at = 0; at < bytes.size(); at += classes_) {
      const auto set = bytes.subspan(at, classes_);
      const auto [row, is_new] =
          row_of_.try_emplace(std::string(set.begin(), set.end()), static_cast<std::int32_t>(row_of_.size()));
      if (is_new) table_.insert(table_.end(), set.begin(), set.end());
      rows.push_back(row->second);
    }
    return rows;
  }
  const std::vector<std::uint8_t>& table() const { return table_; }

 private:
  std::size_t classes_;
  std::unordered_map<std::string, std::int32_t> row_of_;
  std::vector<std::uint8_t> table_;
};

/// @param sets  of the two halves; null: samples have one label
Dataset combine(std::string name, LoadedFile images, const LoadedFile& labels, std::size_t classes,
                const SetEntry& set, LabelSets* sets) {
  const auto& dims = images.array.dims;
  if (dims[0] != labels.array.dims[0]) {
    throw DataError(fmt::format("{}: offset 4: {}, but {} has {}; the two are not of one set, {}",
                                images.path.string(), counted(dims[0], "image"), labels.path.string(),
                                counted(labels.array.dims[0], "label"), fix_for(set)));
  }
  if (sets == nullptr) check_labels(labels, classes, set);
  Dataset half;
  half.name = std::move(name);
  half.shape = shape_of(images.array.dims);
  half.classes = static_cast<int>(classes);
  const auto bytes = labels.array.bytes.span();
  half.labels =
      sets != nullptr ? sets->rows_of(bytes) : std::vector<std::int32_t>(bytes.begin(), bytes.end());
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
          {"train-labels-idx1-ubyte", "train-labels-idx2-ubyte"},
          {"t10k-images-idx3-ubyte", "t10k-images-idx4-ubyte", "test-images-idx3-ubyte",
           "test-images-idx4-ubyte"},
          {"t10k-labels-idx1-ubyte", "t10k-labels-idx2-ubyte", "test-labels-idx1-ubyte",
           "test-labels-idx2-ubyte"}};
}

SetOutline outline_of_idx_set(const SetEntry& set, const SetFiles& files, const PictureForm& /*form*/) {
  const auto train = read_idx_dims(files.files[kTrainImages]), test = read_idx_dims(files.files[kTestImages]);
  check_dimensions(files.files[kTrainImages], train, images_of(set));
  auto train_labels = start_reading(files.files[kTrainLabels], labels_of(set));
  auto test_labels = start_reading(files.files[kTestLabels], labels_of(set));
  const LoadedFile of_train = train_labels.get(), of_test = test_labels.get();
  check_label_sets(of_train, of_test);
  return {.shape = shape_of(train),
          .classes = static_cast<int>(names_of(set, files, of_train, of_test).size()),
          .train_samples = train[0],
          .test_samples = test[0]};
}

TrainTestData load_idx_set(const SetEntry& set, const SetFiles& files, const PictureForm& /*form*/) {
  auto train_images = start_reading(files.files[kTrainImages], images_of(set));
  auto train_labels = start_reading(files.files[kTrainLabels], labels_of(set));
  auto test_images = start_reading(files.files[kTestImages], images_of(set));
  auto test_labels = start_reading(files.files[kTestLabels], labels_of(set));
  LoadedFile of_train = train_images.get();
  const LoadedFile labels_of_train = train_labels.get();
  LoadedFile of_test = test_images.get();
  const LoadedFile labels_of_test = test_labels.get();
  check_label_sets(labels_of_train, labels_of_test);
  TrainTestData data;
  data.class_names = names_of(set, files, labels_of_train, labels_of_test);
  const std::size_t classes = data.class_names.size();
  std::optional<LabelSets> sets;
  if (has_label_sets(labels_of_train)) sets.emplace(classes);
  LabelSets* const shared = sets ? &*sets : nullptr;
  data.train = combine(set.name + " train", std::move(of_train), labels_of_train, classes, set, shared);
  data.test = combine(set.name + " test", std::move(of_test), labels_of_test, classes, set, shared);
  if (sets) data.train.label_sets = data.test.label_sets = sets->table();
  check_shapes(data, files, set);
  return data;
}

}  // namespace lockstep
