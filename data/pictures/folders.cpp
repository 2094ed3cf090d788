// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Looking for people's pictures.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/class_names.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/shards.hpp"

#include <cctype>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The entries of a folder that do not begin with a dot, sorted by their bytes.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with('.')) entries.push_back(it->path());
  }
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
    throw MissingDataError(
        fmt::format("{}: no such folder; name one that holds a folder for each class", folder.string()));
  if (error)
    throw IoError(
        fmt::format("{}: cannot be read: {}; check its permissions", folder.string(), error.message()));
  std::sort(entries.begin(), entries.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

constexpr const char* kReadFormats = "png, jpg, jpeg, webp, gif, bmp, pgm, ppm";

/// In small letters: ".jpg".
std::string extension_of(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

bool is_called_a_picture(const fs::path& path) {
  constexpr std::array<std::string_view, 8> kExtensions = {".png", ".jpg", ".jpeg", ".webp",
                                                           ".gif", ".bmp", ".pgm",  ".ppm"};
  return std::ranges::find(kExtensions, extension_of(path)) != kExtensions.end();
}

bool is_picture(const fs::path& path) {
  std::error_code ignored;
  return is_called_a_picture(path) && fs::is_regular_file(path, ignored);
}

/// In a word or two: what that is, which is no picture.
std::string kind_of(const fs::path& path) {
  std::error_code ignored;
  if (is_folder(path)) return "folder";
  if (fs::is_symlink(path, ignored) && !fs::exists(path, ignored)) return "broken link";
  if (!fs::is_regular_file(path, ignored)) return "device";
  const std::string extension = extension_of(path);
  return extension.empty() ? "file without a format's ending" : extension + " file";
}

bool holds_folders(const fs::path& path) {
  if (!is_folder(path)) return false;
  const auto entries = entries_of(path);
  return std::any_of(entries.begin(), entries.end(), is_folder);
}

/// A class and the pictures in its folder.
struct ClassFolder {
  std::string name;
  std::vector<fs::path> pictures;
};

/// Reads FOLDER/CLASS/PICTURE, and counts what is something else.
class FolderReader {
 public:
  FolderReader(SortedPictures& found, const std::set<fs::path>& skipped) : found_(found), skipped_(skipped) {}

  std::vector<ClassFolder> read(const fs::path& folder) {
    std::vector<ClassFolder> classes;
    for (const fs::path& entry : entries_of(folder)) {
      if (is_folder(entry)) {
        classes.push_back(read_class(entry));
      } else {
        leave_out(entry);
      }
    }
    if (classes.empty()) {
      throw MissingDataError(
          fmt::format("{}: holds no folders; sort the pictures into one for each class, named after it",
                      folder.string()));
    }
    return classes;
  }

 private:
  ClassFolder read_class(const fs::path& folder) {
    ClassFolder result{.name = folder.filename().string(), .pictures = {}};
    if (const char* trouble = trouble_with_class_name(result.name))
      throw DataError(fmt::format("{}: a folder's name is its class's, and this one {}; rename it",
                                  printable_line(folder.string()), trouble));
    bool any_skipped = false;
    for (const fs::path& entry : entries_of(folder)) {
      if (skipped_.contains(entry)) {
        any_skipped = true;
      } else if (is_picture(entry)) {
        result.pictures.push_back(entry);
      } else {
        leave_out(entry);
      }
    }
    if (result.pictures.empty() && any_skipped)
      throw DataError(fmt::format("{}: none of its pictures can be read; put others in, or remove it",
                                  printable_line(folder.string())));
    if (result.pictures.empty())
      throw MissingDataError(fmt::format("{}: holds no pictures ({}); remove it, or put some in",
                                         folder.string(), kReadFormats));
    return result;
  }

  void leave_out(const fs::path& path) {
    if (found_.left_out++ == 0) found_.first_left_out = path;
    ++found_.left_out_kinds[kind_of(path)];
  }

  SortedPictures& found_;
  const std::set<fs::path>& skipped_;
};

void name_classes(const std::vector<ClassFolder>& folders, const fs::path& where, std::size_t most,
                  SortedPictures& found) {
  if (folders.size() > most)
    throw DataError(fmt::format("{}: {} folders; labels tell {} classes apart, and with --shards {}",
                                where.string(), folders.size(), most, with_thousands(kMostShardClasses)));
  for (const ClassFolder& folder : folders) found.class_names.push_back(folder.name);
}

void add(const std::vector<fs::path>& pictures, std::size_t label, std::vector<LabelledPicture>& to) {
  for (const fs::path& picture : pictures) to.push_back({picture, static_cast<std::uint32_t>(label)});
}

/// Where the pictures to test with are, if they have a folder of their own.
fs::path folder_of_tests(const fs::path& folder) {
  for (const char* name : {"test", "val", "validation"})
    if (holds_folders(folder / name)) return folder / name;
  return {};
}

void take_both(const fs::path& folder, const fs::path& tests, FolderReader& reader, std::size_t most_classes,
               SortedPictures& found) {
  const auto train = reader.read(folder / "train"), test = reader.read(tests);
  name_classes(train, folder / "train", most_classes, found);
  for (std::size_t i = 0; i < train.size(); ++i) add(train[i].pictures, i, found.train);
  for (const ClassFolder& half : test) {
    const auto name = std::find(found.class_names.begin(), found.class_names.end(), half.name);
    if (name == found.class_names.end())
      throw DataError(fmt::format("{}: there is no folder of that name to train on; add {}",
                                  (tests / half.name).string(), (folder / "train" / half.name).string()));
    add(half.pictures, static_cast<std::size_t>(name - found.class_names.begin()), found.test);
  }
}

void share_out(const ClassFolder& folder, std::size_t label, const TestChoice& choice,
               SortedPictures& found) {
  const auto is_test = choose_tests(std::ssize(folder.pictures), label, folder.name, choice);
  for (std::size_t i = 0; i < is_test.size(); ++i)
    add({folder.pictures[i]}, label, is_test[i] ? found.test : found.train);
}

void collect_pictures(const fs::path& folder, std::vector<fs::path>& pictures) {
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (is_picture(entry)) {
      pictures.push_back(entry);
    } else if (fs::is_directory(fs::symlink_status(entry, ignored))) {
      collect_pictures(entry, pictures);
    }
  }
}

}  // namespace

std::vector<fs::path> find_pictures(const fs::path& folder) {
  std::vector<fs::path> pictures;
  collect_pictures(folder, pictures);
  if (!pictures.empty()) return pictures;
  throw MissingDataError(fmt::format("{}: holds no pictures ({})", folder.string(), kReadFormats));
}

SortedPictures find_sorted_pictures(const fs::path& folder, const TestChoice& choice,
                                    std::size_t most_classes, const std::set<fs::path>& skipped) {
  SortedPictures found;
  FolderReader reader(found, skipped);
  const fs::path tests = folder_of_tests(folder);
  if (holds_folders(folder / "train") && !tests.empty()) {
    if (choice.is_given)
      throw UsageError(
          fmt::format("{}: the test images have a folder of their own, so none are chosen; leave "
                      "--test-share and --test-count out",
                      folder.string()));
    take_both(folder, tests, reader, most_classes, found);
    return found;
  }
  const auto classes = reader.read(folder);
  name_classes(classes, folder, most_classes, found);
  for (std::size_t i = 0; i < classes.size(); ++i) share_out(classes[i], i, choice, found);
  return found;
}

}  // namespace lockstep
