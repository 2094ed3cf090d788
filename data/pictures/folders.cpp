// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Looking for people's pictures.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/pictures/conversion.hpp"
#include "data/sets/names.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_read(const fs::path& path, const std::error_code& error) {
  throw IoError(fmt::format("{}: cannot be read: {}; check its permissions", path.string(), error.message()));
}

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
  if (error) fail_to_read(folder, error);
  std::sort(entries.begin(), entries.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return entries;
}

/// Of what a path leads to; a circle of links leads nowhere. A disk that fails must not look like one that lacks it.
fs::file_status status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error == std::errc::too_many_symbolic_link_levels) return fs::file_status(fs::file_type::not_found);
  if (error && status.type() != fs::file_type::not_found) fail_to_read(path, error);
  return status;
}

bool is_folder(const fs::path& path) {
  return fs::is_directory(status_of(path));
}

constexpr const char* kReadFormats = "png, jpg, jpeg, webp, bmp, pgm, ppm";

/// In small letters: ".jpg".
std::string extension_of(const fs::path& path) {
  return in_small_letters(path.extension().string());
}

/// GIFs, too: reading one says what to do.
bool is_called_a_picture(const fs::path& path) {
  constexpr std::array<std::string_view, 8> kExtensions = {".png", ".jpg", ".jpeg", ".webp",
                                                           ".gif", ".bmp", ".pgm",  ".ppm"};
  return std::ranges::find(kExtensions, extension_of(path)) != kExtensions.end();
}

bool is_picture(const fs::path& path) {
  return is_called_a_picture(path) && fs::is_regular_file(status_of(path));
}

/// In a word or two: what that is, which is no picture.
std::string kind_of(const fs::path& path) {
  const fs::file_status status = status_of(path);
  if (fs::is_directory(status)) return "folder";
  if (!fs::exists(status)) return "broken link";
  if (!fs::is_regular_file(status)) return "device";
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

void name_classes(const std::vector<ClassFolder>& folders, const fs::path& where, SortedPictures& found) {
  if (std::ssize(folders) > kMostShardClasses)
    throw DataError(fmt::format("{}: {} folders; labels tell {} classes apart", where.string(),
                                folders.size(), with_thousands(kMostShardClasses)));
  if (folders.size() == 1)
    throw DataError(
        fmt::format("{}: {} is the only folder of pictures, and one class cannot be told from others; add "
                    "a folder for each class",
                    where.string(), quoted_text(folders.front().name)));
  for (const ClassFolder& folder : folders) found.class_names.push_back(folder.name);
}

void add(const std::vector<fs::path>& pictures, std::size_t label, std::vector<LabelledPicture>& to) {
  for (const fs::path& picture : pictures) to.push_back({picture, static_cast<std::uint32_t>(label)});
}

/// Where the pictures of the halves are, if they have folders of their own.
struct HalfFolders {
  fs::path train, test, validation;
  bool is_tested_by_validation = false;  ///< there is no test/

  bool are_there() const { return !train.empty() && !test.empty(); }
};

HalfFolders folders_of_halves(const fs::path& folder) {
  const auto first_of = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (holds_folders(folder / name)) return folder / name;
    return fs::path();
  };
  HalfFolders halves{first_of({"train"}), first_of({"test"}), first_of({"val", "validation"})};
  halves.is_tested_by_validation = halves.test.empty();
  if (halves.test.empty()) std::swap(halves.test, halves.validation);
  return halves;
}

std::vector<LabelledPicture>& half_of(SortedPictures& found, SetHalf half) {
  return half == SetHalf::kTrain ? found.train : half == SetHalf::kTest ? found.test : found.validation;
}

void share_out(const ClassFolder& folder, std::size_t label, const SplitChoice& choice,
               SortedPictures& found) {
  const auto halves = split_class(std::ssize(folder.pictures), label, folder.name, choice);
  for (std::size_t i = 0; i < halves.size(); ++i) add({folder.pictures[i]}, label, half_of(found, halves[i]));
}

/// A folder whose classes are those of train/.
void take_judges(const fs::path& folder, const fs::path& train, FolderReader& reader,
                 const SortedPictures& found, std::vector<LabelledPicture>& to) {
  for (const ClassFolder& half : reader.read(folder)) {
    const auto name = std::find(found.class_names.begin(), found.class_names.end(), half.name);
    if (name == found.class_names.end())
      throw DataError(fmt::format("{}: there is no folder of that name to train on; add {}",
                                  (folder / half.name).string(), (train / half.name).string()));
    add(half.pictures, static_cast<std::size_t>(name - found.class_names.begin()), to);
  }
}

void refuse_choice(const fs::path& folder, const char* half, const char* options) {
  throw UsageError(
      fmt::format("{}: the {} images have a folder of their own, so none are chosen; leave {} out",
                  folder.string(), half, options));
}

void take_halves(const HalfFolders& halves, SplitChoice choice, FolderReader& reader, SortedPictures& found) {
  if (choice.is_test_given) refuse_choice(halves.test.parent_path(), "test", "--test-share and --test-count");
  if (choice.validation.is_given() && !halves.validation.empty())
    refuse_choice(halves.test.parent_path(), "validation", "--validation");
  choice.test = {};
  const auto train = reader.read(halves.train);
  name_classes(train, halves.train, found);
  for (std::size_t i = 0; i < train.size(); ++i) share_out(train[i], i, choice, found);
  take_judges(halves.test, halves.train, reader, found, found.test);
  found.has_validation_half = !halves.validation.empty();
  found.is_tested_by_validation = halves.is_tested_by_validation;
  if (found.has_validation_half && !choice.leaves_validation)
    take_judges(halves.validation, halves.train, reader, found, found.validation);
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

std::vector<fs::path> find_pictures(const fs::path& folder) {
  std::vector<fs::path> pictures;
  collect_pictures(folder, pictures);
  if (!pictures.empty()) return pictures;
  throw MissingDataError(fmt::format("{}: holds no pictures ({})", folder.string(), kReadFormats));
}

SortedPictures find_sorted_pictures(const fs::path& folder, const SplitChoice& choice,
                                    const std::set<fs::path>& skipped) {
  SortedPictures found;
  FolderReader reader(found, skipped);
  if (const HalfFolders halves = folders_of_halves(folder); halves.are_there()) {
    take_halves(halves, choice, reader, found);
    return found;
  }
  const auto classes = reader.read(folder);
  name_classes(classes, folder, found);
  for (std::size_t i = 0; i < classes.size(); ++i) share_out(classes[i], i, choice, found);
  return found;
}

}  // namespace lockstep
