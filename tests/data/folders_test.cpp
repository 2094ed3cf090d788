// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// People's folders: which are halves and classes, what in them is a picture, what is said of the rest.
#include "data/pictures/folders.hpp"

#include "common/error.hpp"
#include "data/sets/set_files.hpp"
#include "tests/data/conversion_fixture.hpp"

namespace lockstep::conversion_test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

TEST_F(ConversionTest, FoldersMayHaveThreeHalves) {
  fs::create_directories(path("halves"));
  fs::rename(path("pictures"), path("halves/train"));
  write("halves/val/bees/x.ppm", ppm(4, 3, 1, 2, 3));
  const auto found = [&](const SplitChoice& choice = {}) {
    return find_sorted_pictures(path("halves"), choice);
  };
  EXPECT_EQ(found().test.size(), 1U) << "val/ alone is for testing";
  EXPECT_EQ(found().validation.size(), 0U);
  EXPECT_EQ(found({.validation = {.samples = 2}}).validation.size(), 4U) << "of train/";
  write("halves/test/ants/y.ppm", ppm(4, 3, 1, 2, 3));
  EXPECT_EQ(found().test.front().path.filename(), "y.ppm");
  EXPECT_EQ(found().validation.front().path.filename(), "x.ppm");
  EXPECT_EQ(found().validation.front().label, 1U);
  EXPECT_EQ(found().train.size(), 20U);
  expect_error<UsageError>([&] { found({.is_test_given = true}); },
                           {"the test images have a folder of their own, so none are chosen; leave "
                            "--test (--test-share, --test-count) out"});
  expect_error<UsageError>([&] { found({.validation = {.samples = 2}}); },
                           {"the validation images have a folder of their own", "--validation"});
  write("halves/val/wasps/x.ppm", ppm(4, 3, 1, 2, 3));
  EXPECT_TRUE(found({.leaves_validation = true}).has_validation_half);
  expect_error<DataError>([&] { found(); }, {"val/wasps: there is no folder of that name to train on"});
}

TEST_F(ConversionTest, HalvesAreKnownByTheirNamesInAnyCase) {
  const auto found = [&] { return find_sorted_pictures(path("halves"), {}); };
  const auto refused = [&](std::string_view part) { expect_refusal<DataError>("halves", {part}); };
  fs::create_directories(path("halves"));
  fs::rename(path("pictures"), path("halves/Training"));
  EXPECT_EQ(found().test.size(), 4U) << "alone, a fifth of it is for testing";
  EXPECT_EQ(remarks_on(found()).front(),
            "train/ has neither test/ nor val/ beside it: a part of it becomes the test half");
  write("halves/test/1.ppm", ppm(4, 3, 1, 2, 3));
  refused("halves/test: its pictures have no classes; sort them into folders called as those in 'Training'");
  write("halves/Valid/bees/x.ppm", ppm(4, 3, 1, 2, 3));
  EXPECT_EQ(found().test.size(), 1U);
  EXPECT_EQ(remarks_on(found()),
            (std::vector<std::string>{"Valid/ is the test half, since there is no test/",
                                      "left out: 1 folder; the first is " + path("halves/test").string()}));
  write("halves/TEST/bees/y.ppm", ppm(4, 3, 1, 2, 3));
  EXPECT_EQ(found().validation.size(), 1U);
  write("halves/Testing/bees/y.ppm", ppm(4, 3, 1, 2, 3));
  refused("halves: 'TEST' and 'Testing' would both be the test half");
  fs::remove_all(path("halves/Testing"));
  fs::rename(path("halves/Training"), path("halves/all"));
  refused("halves/TEST: holds folders, as a half of a set does, but there is no train/ beside it; put the");
}

TEST_F(ConversionTest, WhatMayBeHalvesOrClassesIsRefused) {
  const auto classes = [&] { return find_sorted_pictures(path("pictures"), {}).class_names; };
  const auto refused = [&](std::string_view part) { expect_refusal<DataError>("pictures", {part}); };
  fs::rename(path("pictures/ants"), path("pictures/Train"));
  EXPECT_EQ(classes(), (std::vector<std::string>{"Train", "bees"})) << "of buses and trains";
  write("pictures/Train/more/1.ppm", ppm(4, 3, 1, 2, 3));
  EXPECT_EQ(classes().size(), 2U) << "pictures beside a folder: still a class";
  fs::rename(path("pictures/bees"), path("pictures/Train/more/bees"));
  write("pictures/extra/1.ppm", ppm(4, 3, 1, 2, 3));
  for (int i = 0; i < 10; ++i) fs::remove(path("pictures/Train/" + std::to_string(i) + ".ppm"));
  refused("Train: holds folders, as a half of a set does, but 'extra' is beside it; move that elsewhere, or");
  fs::rename(path("pictures/extra"), path("pictures/val"));
  fs::rename(path("pictures/Train/more"), path("pictures/more"));
  fs::remove_all(path("pictures/more"));
  write("pictures/Train/1.ppm", ppm(4, 3, 1, 2, 3));
  refused("pictures: 'Train' and 'val' are called as halves of a set, and hold no folders");
}

TEST_F(ConversionTest, WhatIsNoPictureIsLeftOutAndCounted) {
  write("pictures/ants/Thumbs.db", {1});
  write("pictures/readme.txt", {1});
  write("pictures/ants/.hidden.png", {1});
  write("pictures/__MACOSX/ants/a.png", {1});
  write("pictures/bees/more/scan.TIF", {1});
  fs::create_symlink("/nowhere", path("pictures/ants/gone.png"));
  fs::create_symlink("loop.png", path("pictures/ants/loop.png"));
  fs::create_symlink("/dev/zero", path("pictures/ants/zero.png"));
  fs::create_symlink(path("pictures/bees/1.ppm"), path("pictures/ants/link.ppm"));
  const Conversion done = convert(options());
  EXPECT_EQ(done.pictures.left_out, 8U);
  EXPECT_EQ(done.pictures.left_out_kinds, (std::map<std::string, std::size_t>{{".db file", 1},
                                                                              {".tif file", 1},
                                                                              {".txt file", 1},
                                                                              {"broken link", 2},
                                                                              {"device", 1},
                                                                              {"hidden file", 2}}));
  EXPECT_EQ(remarks_on(done.pictures),
            std::vector<std::string>{"left out: 1 .db file, 1 .tif file (not read: save as PNG), 1 .txt "
                                     "file, 2 broken links, 1 device, 2 hidden files; the first is " +
                                     path("pictures/__MACOSX").string()});
  write("pictures/cows/1.tiff", {1});
  expect_refusal<MissingDataError>(
      "pictures", {"cows: holds no pictures", "but .tiff files, which are not read; save them"});
  EXPECT_EQ(done.pictures.train.size() + done.pictures.test.size(), 21U) << "a link to a picture is followed";
}

TEST_F(ConversionTest, NumberedFilesAreNotToldByTheirNumbers) {
  for (int i = 0; i < 12; ++i) write(fmt::format("pictures/ants/x.{:02}", i), {1});
  for (const char* name : {"one", "two", "scan.tif"}) write("pictures/bees/"s + name, {1});
  std::string told;
  for (int i = 0; i < 10; ++i) told += fmt::format("1 .{:02} file, ", i);
  EXPECT_EQ(remarks_on(find_sorted_pictures(path("pictures"), {})),
            std::vector<std::string>{"left out: " + told +
                                     "1 .tif file (not read: save as PNG), 2 extensionless files, 2 other "
                                     "files; the first is " +
                                     path("pictures/ants/x.00").string()});
}

TEST_F(ConversionTest, FoldersInTheFolderOfAClassAreItsOwn) {
  const auto names = [&](const SortedPictures& found) {
    std::vector<std::string> all;
    for (const LabelledPicture& picture : found.train)
      if (picture.label == 0) all.push_back(picture.path.lexically_relative(path("pictures/ants")));
    return all;
  };
  const auto found = [&] {
    return find_sorted_pictures(path("pictures"), {.test = {.samples = 1}, .seed = 5});
  };
  const std::vector<std::string> flat = names(found());
  EXPECT_FALSE(found().has_validation_half);
  EXPECT_TRUE(std::ranges::is_sorted(flat));
  fs::create_directories(path("pictures/ants/b/deep"));
  for (const char* name : {"3.ppm", "5.ppm"})
    fs::rename(path("pictures/ants") / name, path("pictures/ants/b/deep") / name);
  fs::rename(path("pictures/ants/4.ppm"), path("pictures/ants/b.jfif"));
  fs::create_directory_symlink(path("pictures/ants"), path("pictures/ants/b/circle"));
  fs::create_directory_symlink(path("pictures/bees"), path("pictures/ants/other"));
  fs::create_directory_symlink("b", path("pictures/ants/twice"));
  const SortedPictures nested = found();
  const std::vector<std::string> now = names(nested);
  EXPECT_EQ(now.size(), flat.size() + 10) << "those that a link leads to, too, and none twice";
  EXPECT_TRUE(std::ranges::is_sorted(now));
  const auto at = [&](const char* name) { return std::ranges::find(now, name) - now.begin(); };
  EXPECT_EQ(at("b/deep/3.ppm"), at("b.jfif") + 1) << "by the bytes of paths";
  EXPECT_EQ(nested.left_out_kinds, (std::map<std::string, std::size_t>{{"repeated folder", 2}}));
  std::string deep = "pictures/bees";
  for (int i = 0; i < 63; ++i) deep += "/d";  // the link above is one more
  write(deep + "/x.ppm", ppm(4, 3, 1, 2, 3));
  EXPECT_NO_THROW(found());
  write(deep + "/d/x.ppm", ppm(4, 3, 1, 2, 3));
  expect_error<DataError>(found, {"d: lies more than 64 folders deep in its class"});
}

TEST_F(ConversionTest, ContentsOfFoldersAreSortedAndNamed) {
  for (const char* name : {"h", "b", "g", "a", "f", "c", "e", "d"})
    for (const char* dot : {"", "."}) write("names/"s + dot + name, {1});
  std::vector<fs::path> hidden;
  const auto seen = entries_of(path("names"), &hidden);
  EXPECT_EQ(seen.size(), 8U);
  EXPECT_EQ(hidden.size(), 8U);
  EXPECT_TRUE(std::ranges::is_sorted(seen) && std::ranges::is_sorted(hidden));
  EXPECT_EQ(kind_of(path("names/a")), "extensionless file");
  EXPECT_EQ(kind_of(path("names")), "folder");
  expect_error<MissingDataError>([&] { entries_of(path("names/a")); }, {"names/a: no such folder"});
  expect_error<MissingDataError>([&] { find_pictures(path("names")); },
                                 {"names: holds no pictures (png, jpg,"});
  expect_error<IoError>([&] { is_folder(path(std::string(300, 'n'))); },
                        {"nnn: cannot be read: File name too long; check its permissions"});
  fs::create_directory_symlink(path("pictures"), path("pictures/ants/circle"));
  EXPECT_EQ(find_pictures(path("pictures")).size(), 20U);
}

TEST_F(ConversionTest, FoldersThatAreNoSetAreRefused) {
  expect_refusal<MissingDataError>("nothing", {"nothing: no such folder"});
  fs::create_directories(path("nothing"));
  expect_refusal<MissingDataError>("nothing", {"holds no folders"});
  write("pictures/\x1b[2J/one.ppm", ppm(4, 3, 1, 2, 3));
  expect_refusal<DataError>("pictures", {"is not printable", "\\x1b[2J"});
  fs::remove_all(path("pictures/\x1b[2J"));
  fs::create_directories(path("pictures/cows"));
  fs::create_directory_symlink(".", path("pictures/cows/circle"));
  expect_failure<MissingDataError>(options(), {"cows: holds no pictures"});
  fs::remove_all(path("pictures/cows"));
  fs::remove_all(path("pictures/bees"));
  expect_failure<DataError>(options(), {"pictures: 'ants' is the only folder of pictures"});
  fs::rename(path("pictures/ants"), path("pictures/train"));
  expect_failure<DataError>(options(), {"pictures: 'train' is the only folder of pictures"});
}

TEST_F(ConversionTest, AClassOfDamagedPicturesIsNotLeftOut) {
  write("pictures/cows/a/1.jpg", {});
  write("pictures/cows/b/2.jpg", {});
  ConversionOptions skipping = options();
  skipping.skip_damaged = true;
  expect_failure<DataError>(skipping, {"cows: none of its pictures can be read"});
}

}  // namespace
}  // namespace lockstep::conversion_test
