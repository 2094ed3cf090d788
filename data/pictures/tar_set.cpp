// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WebDataset's archives as a set, read as they are.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "data/class_names.hpp"
#include "data/pictures/picture_sets.hpp"
#include "data/sets/tar_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// HALF*.tar, sorted by their names.
std::vector<fs::path> archives_of(const fs::path& directory, std::string_view half) {
  std::vector<fs::path> archives;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(half) && name.ends_with(".tar")) archives.push_back(it->path());
  }
  if (error)
    throw IoError(
        fmt::format("{}: cannot be read: {}; check its permissions", directory.string(), error.message()));
  std::ranges::sort(archives);
  return archives;
}

/// A half, and the words of its labels.
struct TarHalf {
  PictureHalf half;
  std::vector<std::string> labels;
};

TarHalf read_archives(const std::vector<fs::path>& archives, const std::string& label) {
  TarHalf found;
  PictureList& pictures = found.half.pictures;
  pictures.in_archives = true;
  const Clock::time_point start = Clock::now();
  double next_word = 2;
  for (const fs::path& path : archives) {
    if (seconds_since(start) > next_word) {
      print_error(fmt::format("reading the headers of {} ({} of {})", path.string(),
                              pictures.places.size() + 1, archives.size()));
      next_word += 10;
    }
    const StoredFile archive(path);
    pictures.places.push_back(path);
    found.half.changed.push_back(archive.changed());
    for (auto& [picture, word] : indexed_tar_samples(archive, label)) {
      pictures.add(picture.name, picture.offset, picture.bytes);
      found.labels.push_back(std::move(word));
    }
  }
  return found;
}

TarHalf read_half(const fs::path& directory, std::string_view name, const std::string& label) {
  const auto archives = archives_of(directory, name);
  if (archives.empty())
    throw MissingDataError(
        fmt::format("{}: holds no archives called {}*.tar; name the directory of WebDataset's tars",
                    directory.string(), name));
  TarHalf half = read_archives(archives, label);
  if (half.half.pictures.size() > 0) return half;
  throw DataError(fmt::format("{}: its archives {}*.tar hold no samples, pictures with a {}",
                              directory.string(), name, label == kLabelInCls ? ".cls each" : ".json each"));
}

constexpr const char *kTrainArchives = "train", *kTestArchives = "test", *kValidationArchives = "val";

/// Puts the classes of the labels in their place.
PictureHalves combine(std::vector<TarHalf> halves, TarLabels& labels) {
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i].half.labels = std::move(labels.halves[i].labels);
    halves[i].half.label_digest = std::move(labels.halves[i].sha256);
  }
  return {.train = std::move(halves[0].half),
          .test = std::move(halves[1].half),
          .validation = halves.size() > 2 ? std::move(halves[2].half) : PictureHalf(),
          .class_names = std::move(labels.class_names)};
}

/// A set that was found, and its labels where a sample has several.
struct TarSet {
  PictureHalves halves;
  std::optional<LabelSets> sets;
};

TarSet find_in_archives(const SetFiles& files, const DatasetOptions& options) {
  constexpr std::size_t kMostNames = 10'000;
  const fs::path& directory = files.directory;
  const bool has_tests = !archives_of(directory, kTestArchives).empty();
  const bool has_others = !archives_of(directory, kValidationArchives).empty();
  const bool has_validation_half = has_tests && has_others;
  std::vector<TarHalf> halves;
  halves.push_back(read_half(directory, kTrainArchives, options.label));
  halves.push_back(
      read_half(directory, has_tests || !has_others ? kTestArchives : kValidationArchives, options.label));
  if (has_validation_half && options.validation.is_files)
    halves.push_back(read_half(directory, kValidationArchives, options.label));
  std::vector<std::vector<std::string>> words;
  for (TarHalf& half : halves) words.push_back(std::move(half.labels));
  TarLabels labels = classes_of_words(
      words, files.names.empty() ? std::vector<std::string>() : read_class_names(files.names, kMostNames),
      (files.names.empty() ? directory : files.names).string());
  TarSet set{.halves = combine(std::move(halves), labels), .sets = std::move(labels.sets)};
  set.halves.has_validation_half = has_validation_half;
  return set;
}

}  // namespace

std::vector<FileNames> tar_set_files(const SetEntry& /*set*/) {
  return {};
}

SetOutline outline_of_tar_set(const SetEntry& /*set*/, const SetFiles& files, const DatasetOptions& options) {
  return outline_of_pictures(find_in_archives(files, options).halves, options.pictures);
}

TrainTestData load_tar_set(const SetEntry& set, const SetFiles& files, const DatasetOptions& options) {
  TarSet found = find_in_archives(files, options);
  TrainTestData data = open_pictures(set.name, files.directory, std::move(found.halves), options.pictures);
  if (found.sets) found.sets->give_to(data);
  return data;
}

}  // namespace lockstep
