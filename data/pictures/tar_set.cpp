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

PictureHalf read_archives(const std::vector<fs::path>& archives) {
  PictureHalf half;
  half.pictures.in_archives = true;
  const Clock::time_point start = Clock::now();
  double next_word = 2;
  for (const fs::path& path : archives) {
    if (seconds_since(start) > next_word) {
      print_error(fmt::format("reading the headers of {} ({} of {})", path.string(),
                              half.pictures.places.size() + 1, archives.size()));
      next_word += 10;
    }
    const StoredFile archive(path);
    half.pictures.places.push_back(path);
    half.changed.push_back(archive.changed());
    for (const auto& [picture, label] : indexed_tar_samples(archive)) {
      half.pictures.add(picture.name, picture.offset, picture.bytes);
      half.labels.push_back(label);
    }
  }
  return half;
}

PictureHalf find_half(const fs::path& directory, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto archives = archives_of(directory, name);
    if (archives.empty()) continue;
    PictureHalf half = read_archives(archives);
    if (half.pictures.size() > 0) return half;
    throw DataError(fmt::format("{}: its archives {}*.tar hold no samples, pictures with a .cls each",
                                directory.string(), name));
  }
  throw MissingDataError(
      fmt::format("{}: holds no archives called {}*.tar; name the directory of WebDataset's tars",
                  directory.string(), *names.begin()));
}

std::vector<std::string> names_of_labels(const PictureHalves& halves, const SetFiles& files) {
  constexpr std::size_t kMostNames = 10'000;
  const int classes = 1 + std::max(*std::ranges::max_element(halves.train.labels),
                                   *std::ranges::max_element(halves.test.labels));
  if (files.names.empty()) return numbered_classes(classes);
  std::vector<std::string> names = lockstep::read_class_names(files.names, kMostNames);
  if (std::ssize(names) >= classes) return names;
  throw DataError(fmt::format("{}: names {} classes, and the labels go up to {}; add the others",
                              files.names.string(), names.size(), classes - 1));
}

PictureHalves find_in_archives(const SetFiles& files) {
  PictureHalves halves{.train = find_half(files.directory, {"train"}),
                       .test = find_half(files.directory, {"test", "val"}),
                       .class_names = {}};
  halves.class_names = names_of_labels(halves, files);
  return halves;
}

}  // namespace

std::vector<FileNames> tar_set_files(const SetEntry& /*set*/) {
  return {};
}

SetOutline outline_of_tar_set(const SetEntry& /*set*/, const SetFiles& files, const PictureForm& form) {
  return outline_of_pictures(find_in_archives(files), form);
}

TrainTestData load_tar_set(const SetEntry& set, const SetFiles& files, const PictureForm& form) {
  return open_pictures(set.name, files.directory, find_in_archives(files), form);
}

}  // namespace lockstep
