// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Recognises what lies in people's folders.
#include "data/pictures/folders.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "data/dataset.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace lockstep {

namespace fs = std::filesystem;

namespace {

/// Looks at what a path leads to; a circle of links leads nowhere.
fs::file_status status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error == std::errc::too_many_symbolic_link_levels) return fs::file_status(fs::file_type::not_found);
  if (error && status.type() != fs::file_type::not_found) fail_to_read(path, error);
  return status;
}

}  // namespace

bool is_folder(const fs::path& path) {
  return fs::is_directory(status_of(path));
}

std::string extension_of(const fs::path& path) {
  return in_small_letters(path.extension().string());
}

bool is_of_unread_format(std::string_view extension) {
  constexpr std::string_view kExtensions[] = {".avif", ".heic", ".heif", ".jp2",
                                              ".jxl",  ".tga",  ".tif",  ".tiff"};
  return std::ranges::find(kExtensions, extension) != std::end(kExtensions);
}

bool is_picture(const fs::path& path) {
  const std::string extension = extension_of(path);
  return !extension.empty() && is_ending_of_picture(std::string_view(extension).substr(1)) &&
         fs::is_regular_file(status_of(path));
}

std::string kind_of(const fs::path& path) {
  if (is_hidden(path)) return "hidden file";
  const fs::file_status status = status_of(path);
  if (fs::is_directory(status)) return "folder";
  if (!fs::exists(status)) return "broken link";
  if (!fs::is_regular_file(status)) return "device";
  const std::string extension = extension_of(path);
  return extension.empty() ? "extensionless file" : extension + std::string(kFileKind);
}

// Folders of halves, told from those of classes.

namespace {

bool holds_any(const fs::path& folder, bool (*is)(const fs::path&)) {
  return std::ranges::any_of(entries_of(folder), is);
}

bool is_called_a_half(const fs::path& folder) {
  return half_called(folder.filename().string()).has_value();
}

HalfFolders folders_in(const fs::path& root) {
  HalfFolders found;
  for (const fs::path& entry : entries_of(root, &found.files)) {
    const auto half = half_called(entry.filename().string());
    const bool is_any_folder = is_folder(entry),
               is_half = is_any_folder && half && holds_any(entry, is_folder);
    fs::path& place = !is_any_folder ? found.files.emplace_back()
                      : !is_half     ? found.others.emplace_back()
                                     : select_half(found, *half);
    if (!place.empty())
      throw DataError(
          fmt::format("{}: {} and {} would both be the {} half; put their pictures into one, or "
                      "move one elsewhere",
                      root.string(), quoted_text(place.filename().string()),
                      quoted_text(entry.filename().string()), name_of(*half)));
    place = entry;
  }
  return found;
}

/// Two folders or more that are called as halves, and no others.
void refuse_unsorted_halves(const fs::path& root, const std::vector<fs::path>& folders) {
  if (folders.size() < 2 || !std::ranges::all_of(folders, is_called_a_half)) return;
  throw DataError(
      fmt::format("{}: {} and {} are called as halves of a set, and hold no folders; sort their pictures "
                  "into a folder for each class in each of them, or rename them if they are classes",
                  root.string(), quoted_text(folders[0].filename().string()),
                  quoted_text(folders[1].filename().string())));
}

void collect_pictures(const fs::path& folder, std::vector<fs::path>& pictures) {
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (is_picture(entry)) {
      pictures.push_back(entry);
    } else if (is_folder(entry) && !fs::is_symlink(entry, ignored)) {
      collect_pictures(entry, pictures);
    }
  }
}

}  // namespace

std::optional<HalfFolders> halves_in(const fs::path& root) {
  HalfFolders found = folders_in(root);
  const auto& [train, test, validation, others, files] = found;
  if (train.empty() && test.empty() && validation.empty()) {
    refuse_unsorted_halves(root, others);
    return std::nullopt;
  }
  if (!train.empty() && (!test.empty() || !validation.empty() || others.empty())) return found;
  const auto unsorted = std::ranges::find_if(others, is_called_a_half);
  if (!train.empty() && unsorted != others.end())
    throw DataError(
        fmt::format("{}: its pictures have no classes; sort them into folders called as those in {}, or move "
                    "it elsewhere, so that a part of that is for testing",
                    printable_line(unsorted->string()), quoted_text(train.filename().string())));
  const fs::path& half = !train.empty() ? train : test.empty() ? validation : test;
  if (holds_any(half, is_picture)) return std::nullopt;  // a class, in which there is a folder, too
  throw DataError(fmt::format(
      "{}: holds folders, as a half of a set does, but {}, or rename it if it is a class",
      printable_line(half.string()),
      train.empty() ? "there is no train/ beside it; put the classes to train on into one"
                    : quoted_text(others[0].filename().string()) + " is beside it; move that elsewhere"));
}

// All pictures in a folder, with any folders in it.

std::vector<fs::path> find_pictures(const fs::path& folder) {
  std::vector<fs::path> pictures;
  collect_pictures(folder, pictures);
  if (!pictures.empty()) return pictures;
  throw MissingDataError(fmt::format("{}: holds no pictures ({})", folder.string(), kReadFormats));
}

}  // namespace lockstep
