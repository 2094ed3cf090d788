// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Looking for the files of an image set.
#include "data/image_files.hpp"

#include "common/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// An environment variable, empty if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): see resolve_data_root
  return value != nullptr ? value : "";
}

/// Empty where there is no home.
fs::path cache_directory() {
  const std::string xdg = variable("XDG_CACHE_HOME");
  if (fs::path(xdg).is_absolute()) return xdg;  // the XDG specification: ignore a relative one
  const std::string home = variable("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache";
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The plain file, the .gz beside it, or an empty path.
fs::path find_file(const fs::path& directory, const char* name) {
  fs::path plain = directory / name;
  fs::path packed = directory / (std::string(name) + ".gz");
  if (is_file(plain)) return plain;
  return is_file(packed) ? packed : fs::path();
}

/// What makes a directory unusable, for a message; empty if it holds all four files, which are then in
/// `files`.
std::string look_into(const fs::path& directory, ImageSetFiles& files) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) return "no such directory";
  files.directory = directory;
  fs::path* const found[] = {&files.train_images, &files.train_labels, &files.test_images,
                             &files.test_labels};
  std::vector<std::string> lacks;
  for (std::size_t i = 0; i < kImageSetFileNames.size(); ++i) {
    *found[i] = find_file(directory, kImageSetFileNames[i]);
    if (found[i]->empty()) lacks.emplace_back(kImageSetFileNames[i]);
  }
  if (lacks.empty()) return "";
  if (lacks.size() == kImageSetFileNames.size()) return "none of its files";
  return fmt::format("lacks {}", fmt::join(lacks, " and "));
}

}  // namespace

std::vector<fs::path> candidate_places(std::string_view set, const std::string& root) {
  if (root != "auto") return {fs::path(root) / set, fs::path(root)};
  std::vector<fs::path> places;
  if (const std::string data = variable("LOCKSTEP_DATA"); !data.empty()) {
    places.push_back(fs::path(data) / set);
    places.emplace_back(data);
  }
  if (const fs::path cache = cache_directory(); !cache.empty()) places.push_back(cache / "lockstep" / set);
  places.push_back(fs::path("/usr/share/datasets") / set);
  return places;
}

ImageSetFiles find_image_set(std::string_view set, const std::vector<fs::path>& places) {
  std::vector<std::string> looked;
  for (const fs::path& place : places) {
    ImageSetFiles files;
    const std::string trouble = look_into(place, files);
    if (trouble.empty()) return files;
    looked.push_back(fmt::format("{} ({})", place.string(), trouble));
  }
  throw MissingDataError(
      fmt::format("data set '{}' is not on this machine; looked in {}; fetch it with: launch/get-data {}",
                  set, fmt::join(looked, ", "), set));
}

}  // namespace lockstep
