// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures sorted into folders, which are those of classes.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/pictures/conversion.hpp"
#include "data/pictures/folders.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// A class and the pictures in its folder.
struct ClassFolder {
  std::string name;
  std::vector<fs::path> pictures{};
  fs::path unread{};  ///< one of those whose format is not read
  std::set<std::pair<dev_t, ino_t>>
      folders{};  ///< that were read: links may lead to one again, or in a circle
};

/// Reads FOLDER/CLASS and the folders in it, and counts what is something else.
class FolderReader {
 public:
  FolderReader(SortedPictures& found, const std::set<fs::path>& skipped) : found_(found), skipped_(skipped) {}

  std::vector<ClassFolder> read(const fs::path& folder) {
    std::vector<ClassFolder> classes;
    for (const fs::path& entry : visible_entries(folder)) {
      if (is_folder(entry))
        classes.push_back(read_class(entry));
      else
        leave_out(entry, kind_of(entry));
    }
    if (classes.empty())
      throw MissingDataError(
          fmt::format("{}: holds no folders; sort the pictures into one for each class, named after it",
                      folder.string()));
    return classes;
  }

  void leave_out(const fs::path& path, const std::string& kind) {
    if (found_.left_out++ == 0) found_.first_left_out = path;
    ++found_.left_out_kinds[kind];
  }

 private:
  static constexpr int kDeepest = 64;

  std::vector<fs::path> visible_entries(const fs::path& folder) {
    std::vector<fs::path> hidden, entries = entries_of(folder, &hidden);
    for (const fs::path& entry : hidden) leave_out(entry, kind_of(entry));
    return entries;
  }

  ClassFolder read_class(const fs::path& folder) {
    ClassFolder result{.name = folder.filename().string()};
    if (const char* trouble = trouble_with_class_name(result.name))
      throw DataError(fmt::format("{}: a folder's name is its class's, and this one {}; rename it",
                                  printable_line(folder.string()), trouble));
    const bool any_skipped = walk(folder, 0, result);
    std::ranges::sort(result.pictures, {}, &fs::path::native);
    if (!result.pictures.empty()) return result;
    const std::string name = printable_line(folder.string());
    if (any_skipped)
      throw DataError(fmt::format("{}: none of its pictures can be read; put others in, or remove it", name));
    if (!result.unread.empty())
      throw MissingDataError(
          fmt::format("{}: holds no pictures ({}), but {} files, which are not read; save them as PNG", name,
                      kReadFormats, extension_of(result.unread)));
    throw MissingDataError(
        fmt::format("{}: holds no pictures ({}); remove it, or put some in", name, kReadFormats));
  }

  /// @returns true if any picture in it was skipped
  bool walk(const fs::path& folder, int depth, ClassFolder& found) {
    if (depth > kDeepest)
      throw DataError(fmt::format("{}: lies more than {} folders deep in its class; move its pictures up",
                                  printable_line(folder.string()), kDeepest));
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0)
      fail_to_read(folder, std::error_code(errno, std::generic_category()));
    if (!found.folders.emplace(status.st_dev, status.st_ino).second) {
      leave_out(folder, "repeated folder");
      return false;
    }
    bool any_skipped = false;
    for (const fs::path& entry : visible_entries(folder)) {
      if (skipped_.contains(entry)) {
        any_skipped = true;
      } else if (is_picture(entry)) {
        found.pictures.push_back(entry);
      } else if (is_folder(entry)) {
        any_skipped = walk(entry, depth + 1, found) || any_skipped;
      } else {
        if (is_of_unread_format(extension_of(entry))) found.unread = entry;
        leave_out(entry, kind_of(entry));
      }
    }
    return any_skipped;
  }

  SortedPictures& found_;
  const std::set<fs::path>& skipped_;
};

/// Names the classes, and shares their pictures out.
void take_classes(const fs::path& where, const SplitChoice& choice, FolderReader& reader,
                  SortedPictures& found) {
  const auto folders = reader.read(where);
  if (std::ssize(folders) > kMostShardClasses)
    throw DataError(fmt::format("{}: {} folders; labels distinguish at most {} classes", where.string(),
                                folders.size(), with_thousands(kMostShardClasses)));
  if (folders.size() == 1)
    throw DataError(fmt::format(
        "{}: {} is the only folder of pictures, and one class cannot be distinguished from others; add "
        "a folder for each class",
        where.string(), quoted_text(folders.front().name)));
  for (std::uint32_t label = 0; label < folders.size(); ++label) {
    const ClassFolder& folder = folders[label];
    found.class_names.push_back(folder.name);
    const auto halves = split_class(std::ssize(folder.pictures), label, folder.name, choice);
    for (std::size_t i = 0; i < halves.size(); ++i)
      select_half(found, halves[i]).push_back({folder.pictures[i], label});
  }
}

/// A folder whose classes are those of train/.
void take_judges(const fs::path& folder, const fs::path& train, FolderReader& reader,
                 const SortedPictures& found, std::vector<LabelledPicture>& to) {
  for (const ClassFolder& half : reader.read(folder)) {
    const auto name = std::ranges::find(found.class_names, half.name);
    if (name == found.class_names.end())
      throw DataError(fmt::format("{}: there is no folder of that name to train on; add {}",
                                  (folder / half.name).string(), (train / half.name).string()));
    for (const fs::path& picture : half.pictures)
      to.push_back({picture, static_cast<std::uint32_t>(name - found.class_names.begin())});
  }
}

void refuse_choice(const fs::path& folder, const char* half, const char* options) {
  throw UsageError(
      fmt::format("{}: the {} images have a folder of their own, so none are chosen; leave {} out",
                  folder.string(), half, options));
}

/// Without a half to test with, the choice takes a share of train/.
void take_halves(HalfFolders halves, SplitChoice choice, FolderReader& reader, SortedPictures& found) {
  if (halves.test.empty()) {
    halves.test.swap(halves.validation);
    found.test_stand_in = halves.test;
    found.is_train_alone = halves.test.empty();
  }
  for (const auto* others : {&halves.files, &halves.others})
    for (const fs::path& other : *others) reader.leave_out(other, kind_of(other));
  const bool has_tests = !halves.test.empty();
  const fs::path root = halves.train.parent_path();
  if (choice.is_test_given && has_tests) refuse_choice(root, "test", "--test (--test-share, --test-count)");
  if (choice.validation.is_given() && !halves.validation.empty())
    refuse_choice(root, "validation", "--validation");
  if (has_tests) choice.test = {};
  take_classes(halves.train, choice, reader, found);
  if (has_tests) take_judges(halves.test, halves.train, reader, found, found.test);
  found.has_validation_half = !halves.validation.empty();
  if (found.has_validation_half && !choice.leaves_validation)
    take_judges(halves.validation, halves.train, reader, found, found.validation);
}

}  // namespace

std::vector<std::string> remarks_on(const SortedPictures& found) {
  std::vector<std::string> remarks;
  if (found.is_train_alone)
    remarks.emplace_back("train/ has neither test/ nor val/ beside it: a part of it becomes the test half");
  if (!found.test_stand_in.empty())
    remarks.push_back(fmt::format("{}/ is the test half, since there is no test/",
                                  printable_line(found.test_stand_in.filename().string())));
  if (found.left_out == 0) return remarks;
  constexpr std::size_t kMostKinds = 10;  // scan.0001, scan.0002 ... are files of so many extensions
  std::size_t others = 0;
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : found.left_out_kinds) {
    const bool is_unread =
        kind.ends_with(kFileKind) && is_of_unread_format(kind.substr(0, kind.size() - kFileKind.size()));
    if (kind.starts_with('.') && !is_unread && kinds.size() >= kMostKinds)
      others += count;
    else
      kinds.push_back(printable_line(counted(count, kind)) + (is_unread ? " (not read: save as PNG)" : ""));
  }
  if (others > 0) kinds.push_back(counted(others, "other file"));
  remarks.push_back(fmt::format("left out: {}; the first is {}", fmt::join(kinds, ", "),
                                printable_line(found.first_left_out.string())));
  return remarks;
}

SortedPictures find_sorted_pictures(const fs::path& folder, const SplitChoice& choice,
                                    const std::set<fs::path>& skipped) {
  SortedPictures found;
  FolderReader reader(found, skipped);
  if (auto halves = halves_in(folder))
    take_halves(*std::move(halves), choice, reader, found);
  else
    take_classes(folder, choice, reader, found);
  return found;
}

}  // namespace lockstep
