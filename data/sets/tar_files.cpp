// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Looking for archives of any name.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "data/sets/names.hpp"
#include "data/sets/tar_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kArchive = ".tar";

/// @param name  in small letters
std::optional<SetHalf> half_by_name(std::string_view name, const fs::path& path) {
  for (const char* beginning : {"train", "test", "val"})
    if (name.starts_with(beginning)) return half_called(beginning);
  std::optional<SetHalf> found;
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  for (auto at = name.find_first_of(kLetters); at != name.npos; at = name.find_first_of(kLetters)) {
    name.remove_prefix(at);
    const std::string_view word = name.substr(0, name.find_first_not_of(kLetters));
    name.remove_prefix(word.size());
    const auto half = half_called(std::string(word));
    if (half && found && half != found)
      throw DataError(fmt::format(
          "{}: is called after two halves; let its name begin with train, test or val", path.string()));
    if (half) found = half;
  }
  return found;
}

/// The entries of a directory, sorted.
std::vector<fs::path> sorted_entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error)
    throw IoError(
        fmt::format("{}: cannot be read: {}; check its permissions", directory.string(), error.message()));
  std::ranges::sort(entries);
  return entries;
}

/// Takes archives, and notes files that are compressed ones.
class ArchiveFinder {
 public:
  void look_into(const fs::path& directory, std::optional<SetHalf> half_of_folder) {
    for (const fs::path& path : sorted_entries(directory)) {
      const std::string name = in_small_letters(path.filename().string());
      std::error_code ignored;
      if (name.starts_with('.')) continue;  // macOS puts some beside archives
      if (fs::is_directory(path, ignored)) {
        const auto half = half_of_folder ? std::nullopt : half_called(name);
        if (half) look_into(path, half);
      } else if (name.ends_with(kArchive)) {
        add(path, half_of_folder ? half_of_folder : half_by_name(name, path));
      } else if (name.ends_with(".tgz") || name.find(".tar.") != name.npos) {
        found_.compressed.push_back(path);
      }
    }
  }

  TarFiles take(const fs::path& directory) {
    if (is_found_) return std::move(found_);
    if (!found_.compressed.empty())
      throw DataError(fmt::format(
          "{}: is compressed, and archives are read where they lie; unpack it to a .tar, as gunzip does",
          found_.compressed.front().string()));
    throw MissingDataError(fmt::format(
        "{}: holds no archives (*.tar); name the directory of WebDataset's tars", directory.string()));
  }

 private:
  void add(const fs::path& path, std::optional<SetHalf> half) {
    is_found_ = true;
    if (!half) return found_.others.push_back(path);
    select_half(found_, *half).push_back(path);
  }

  TarFiles found_;
  bool is_found_ = false;
};

}  // namespace

TarFiles find_tar_files(const fs::path& directory) {
  ArchiveFinder finder;
  finder.look_into(directory, std::nullopt);
  return finder.take(directory);
}

}  // namespace lockstep
