// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Looking for archives of any name.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/tar_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kArchive = ".tar";
constexpr std::string_view kCompressed[] = {".tgz",      ".tbz2",   ".txz",     ".tar.gz",
                                            ".tar.bz2",  ".tar.xz", ".tar.zst", ".tar.lz4",
                                            ".tar.lzma", ".tar.lz", ".tar.z"};

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

/// Takes archives, and notes files that are compressed ones.
void look_into(const fs::path& directory, std::optional<SetHalf> half_of_folder, TarFiles& found) {
  for (const fs::path& path : entries_of(directory)) {
    const std::string name = in_small_letters(path.filename().string());
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      const auto half = half_of_folder ? std::nullopt : half_called(name);
      if (half) look_into(path, half, found);
    } else if (name.ends_with(kArchive)) {
      const auto half = half_of_folder ? half_of_folder : half_by_name(name, path);
      (half ? select_half(found, *half) : found.others).push_back(path);
    } else if (std::ranges::any_of(kCompressed, [&](auto ending) { return name.ends_with(ending); })) {
      found.compressed.push_back(path);
    }
  }
}

}  // namespace

TarFiles find_tar_files(const fs::path& directory) {
  TarFiles found;
  look_into(directory, std::nullopt, found);
  for (const auto* archives : {&found.train, &found.test, &found.validation, &found.others})
    if (!archives->empty()) return found;
  if (!found.compressed.empty())
    throw DataError(fmt::format(
        "{}: is compressed, and archives are read where they lie; unpack it to a .tar, as gunzip does",
        found.compressed.front().string()));
  throw MissingDataError(fmt::format("{}: holds no archives (*.tar); name the directory of WebDataset's tars",
                                     directory.string()));
}

}  // namespace lockstep
