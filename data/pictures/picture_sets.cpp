// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Folders of pictures as a set, and what any set of pictures is once it was found.
#include "data/pictures/picture_sets.hpp"

#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

template <typename Number>
std::span<const std::byte> bytes_of(const Number& number) {
  return std::as_bytes(std::span(&number, 1));
}

Fingerprint fingerprint_of(const PictureHalf& half, const ImageShape& shape, const PictureForm& form) {
  const PictureList& pictures = half.pictures;
  Sha256 samples;
  const std::string head =
      fmt::format("{} pictures, {} x {} x {}, fit {}\n", pictures.size(), shape.channels, shape.height,
                  shape.width, form.has_size() ? static_cast<int>(form.fit) : -1);
  samples.update(std::as_bytes(std::span(head)));
  for (std::int64_t i = 0; i < pictures.size(); ++i) {
    samples.update(std::as_bytes(std::span(pictures.name_of(i))));
    samples.update(bytes_of('\0'));
    samples.update(bytes_of(pictures[i].bytes));
  }
  return {.samples = hex(samples.finish()),
          .labels = half.label_digest.empty() ? hex(sha256(std::as_bytes(std::span(half.labels))))
                                              : half.label_digest};
}

Dataset open_half(std::string name, PictureHalf half, std::size_t classes, const ImageShape& shape,
                  const PictureForm& form, const fs::path& sums_file) {
  Dataset set;
  set.name = std::move(name);
  set.shape = shape;
  set.classes = static_cast<int>(classes);
  set.file_fingerprint = fingerprint_of(half, shape, form);
  set.labels = std::move(half.labels);
  const std::string key =
      set.file_fingerprint->samples + quick_digest(std::as_bytes(std::span(half.changed)));
  set.store =
      std::make_shared<const PictureStore>(PictureStore::Contents{.name = set.name,
                                                                  .pictures = std::move(half.pictures),
                                                                  .form = form,
                                                                  .shape = shape,
                                                                  .sums_file = sums_file,
                                                                  .sums_key = key});
  return set;
}

// Folders.

void add_file(const fs::path& path, const fs::path& root, PictureHalf& half) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw IoError(fmt::format("{}: cannot be examined: {}; check its permissions", path.string(),
                              std::generic_category().message(errno)));
  half.changed.push_back(std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec);
  half.pictures.add(path.lexically_relative(root).native(), 0, static_cast<std::uint64_t>(status.st_size));
}

PictureHalf half_of(const std::vector<LabelledPicture>& pictures, const fs::path& root) {
  PictureHalf half;
  half.pictures.places = {root};
  for (const LabelledPicture& picture : pictures) {
    add_file(picture.path, root, half);
    half.labels.push_back(static_cast<std::int32_t>(picture.label));
  }
  return half;
}

PictureHalves find_in_folders(const fs::path& root, const DatasetOptions& options) {
  SortedPictures found = find_sorted_pictures(root, {.leaves_validation = !options.validation.is_files},
                                              std::size_t{kMostShardClasses});
  return {.train = half_of(found.train, root),
          .test = half_of(found.test, root),
          .validation = half_of(found.validation, root),
          .has_validation_half = found.has_validation_half,
          .class_names = std::move(found.class_names)};
}

}  // namespace

TrainTestData open_pictures(const std::string& set, const fs::path& directory, PictureHalves halves,
                            const PictureForm& form) {
  const ImageShape shape = PictureStore::shape_of(halves.train.pictures, 0, form);
  const auto open = [&](SetHalf half, PictureHalf& pictures) {
    return open_half(fmt::format("{} {}", set, name_of(half)), std::move(pictures), halves.class_names.size(),
                     shape, form, directory / fmt::format(".{}-sums.lockstep", name_of(half)));
  };
  TrainTestData data;
  data.train = open(SetHalf::kTrain, halves.train);
  data.test = open(SetHalf::kTest, halves.test);
  if (halves.validation.pictures.size() > 0) data.validation = open(SetHalf::kValidation, halves.validation);
  data.has_validation_half = halves.has_validation_half;
  data.class_names = std::move(halves.class_names);
  return data;
}

SetOutline outline_of_pictures(const PictureHalves& halves, const PictureForm& form) {
  return {.shape = PictureStore::shape_of(halves.train.pictures, 0, form),
          .classes = static_cast<int>(halves.class_names.size()),
          .train_samples = halves.train.pictures.size(),
          .test_samples = halves.test.pictures.size(),
          .validation_samples = halves.validation.pictures.size(),
          .on_disk = true};
}

std::vector<FileNames> picture_set_files(const SetEntry& /*set*/) {
  return {};
}

SetOutline outline_of_picture_set(const SetEntry& /*set*/, const SetFiles& files,
                                  const DatasetOptions& options) {
  return outline_of_pictures(find_in_folders(files.directory, options), options.pictures);
}

TrainTestData load_picture_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  return open_pictures(set.name, files.directory, find_in_folders(files.directory, options),
                       options.pictures);
}

}  // namespace lockstep
