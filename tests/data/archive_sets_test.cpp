// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets in WebDataset's archives: their halves, labels and samples, and archives that are missing or change.
#include "common/error.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/tar_samples.hpp"
#include "tests/data/picture_sets_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::picture_sets_test {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::image_of;
using test::kTarEnd;
using test::tar_entry;
using test::tar_sample;
using test::text_in;

TEST_F(PictureSetsTest, LabelsThatChangedUnderOneSizeAndTimeAreSeen) {
  write_tars();
  const Dataset before = load("webdataset").train;
  const fs::path archive = path("tars/train-1.tar");
  const auto time = fs::last_write_time(archive);
  std::string bytes = text_in(archive);
  const auto at = bytes.find("1\n" + std::string(510, '\0'));
  ASSERT_NE(at, bytes.npos);
  bytes[at] = '2';
  test::write_file(archive, bytes_of(bytes));
  fs::last_write_time(archive, time);
  const Dataset after = load("webdataset").train;
  EXPECT_NE(after.labels, before.labels);
  EXPECT_NE(fingerprint_of(after), fingerprint_of(before));
  for (const auto& entry : fs::directory_iterator(path("tars")))
    EXPECT_EQ(entry.path().extension(), ".tar") << "nothing is written beside them";
}

TEST_F(PictureSetsTest, AnArchiveThatBecomesShorterIsNamed) {
  write_tars();
  load("webdataset");  // measures, and what it decodes stays with it
  const Dataset train = load("webdataset").train;
  fs::resize_file(path("tars/train-1.tar"), 600);
  expect_error<DataError>([&] { image_of(train, 7); },
                          {"tars/train-1.tar: ends at byte", "(sample 7 of webdataset train)"});
}

TEST_F(PictureSetsTest, AValidationHalfThatIsForTestingIsSaid) {
  write_tars();
  for (const auto& [set, root, part] :
       {std::tuple{"pictures", "photos", "val/ is the test half, since there is no test/; add test/"},
        {"webdataset", "tars", "val*.tar is the test half, since there is no test*.tar; add test*.tar"}})
    expect_error<DatasetOptionError>(
        [&, set = set, root = root] {
          load_dataset(
              {.set = set, .root = path(root).string(), .validation = {.is_files = true}, .pictures = kForm});
        },
        {"validation: files: ", part});
}

TEST_F(PictureSetsTest, AValidationHalfBesideOneForTestingIsReadIfItIsAskedFor) {
  write_tars();
  for (const char* label : {"0", "1", "2"})
    write(fmt::format("photos/test/class {}/x.jpg", label), picture(90, true));
  write_text("tars/test-0.tar", tar_entry("x.jpg", text_in(path("photos/test/class 1/x.jpg"))) +
                                    tar_entry("x.cls", "1") + kTarEnd);
  for (const auto& [set, root, tests] :
       {std::tuple{std::string("pictures"), "photos", 3}, {std::string("webdataset"), "tars", 1}}) {
    SCOPED_TRACE(set);
    DatasetOptions options{.set = set, .root = path(root), .pictures = kForm};
    const TrainTestData without = load_dataset(options);
    EXPECT_TRUE(without.has_validation_half && without.validation.size() == 0 && without.remarks.empty());
    EXPECT_EQ(without.test.size(), tests);
    options.validation = {.is_files = true};
    const TrainTestData data = load_dataset(options);
    EXPECT_EQ(data.test.size(), tests);
    EXPECT_EQ(data.validation.name, set + " validation");
    EXPECT_EQ(data.validation.labels, (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
    EXPECT_EQ(outline_of(options).validation_samples, 12);
  }
}

/// ImageNet has 21,841.
TEST_F(PictureSetsTest, TensOfThousandsOfClassesMayBeNamed) {
  write_tars();
  EXPECT_FALSE(load("webdataset").has_validation_half) << "the one that there is is for testing";
  std::string names;
  for (int i = 0; i < 21'841; ++i) names += fmt::format("class {}\n", i);
  write_text("tars/classes.txt", names);
  const TrainTestData data = load("webdataset");
  EXPECT_EQ(data.train.classes, 21'841);
  EXPECT_EQ(data.class_names.back(), "class 21840");
  write_text("tars/classes.txt", names + "class 3\n");
  expect_error<DataError>([&] { load("webdataset"); },
                          {"classes.txt: line 21842: 'class 3' is the name of class 3 already"});
}

TEST_F(PictureSetsTest, ArchivesOfNoHalfAreLeftOutIfOthersHaveOne) {
  write_tars();
  write_text("tars/other.tar", kTarEnd);
  EXPECT_EQ(
      load("webdataset").remarks,
      (std::vector<std::string>{
          path("tars").string() + ": val archives are the test half, since no archive is named after test",
          "left out 1 archive not named after a half (train, test or val); the first is " +
              path("tars/other.tar").string()}));
}

TEST_F(PictureSetsTest, ArchivesThatAreMissingAreSaid) {
  const auto loading = [&](const char* root) {
    return [this, root] { load_dataset({.set = "webdataset", .root = path(root).string()}); };
  };
  const auto fails = [&](const char* root, const char* part) { expect_error<Error>(loading(root), {part}); };
  fails("photos", "holds no archives (*.tar)");
  write("packed/a.tar.md5", {});
  fails("packed", "packed: holds no archives (*.tar)");
  write("packed/train-0.tar.gz", {});
  fails("packed", "packed/train-0.tar.gz: is compressed");
  write_text("tests/test-0.tar", tar_sample("1", 0) + kTarEnd);
  expect_error<MissingDataError>(loading("tests"), {"holds no archives to train on"});
  write_text("empty/a.tar", tar_entry("README", "hello") + kTarEnd);
  expect_error<DataError>(
      loading("empty"),
      {"empty/a.tar: no samples, pictures with a .cls each, and the first entry is README"});
  for (const char* name : {"none/train-0.tar", "none/train-1.tar"}) write_text(name, kTarEnd);
  fails("none",
        "none/train-0.tar and those after it: no samples, pictures with a .cls each, and it has no entries");
  write_text("both/my-train-test.tar", kTarEnd);
  fails("both", "my-train-test.tar: is called after two halves");
  expect_error<MissingDataError>([&] { load_dataset({.set = "pictures", .root = path("nowhere").string()}); },
                                 {"data set 'pictures' is not on this machine"});
}

TEST_F(PictureSetsTest, HalvesAreThoseOfNamesAndFolders) {
  for (const char* name :
       {"Train_1.TAR", "my-training-0.tar", "TEST.tar", "x/y.tar", "val/train.tar",
        "imagenet_validation-0.tar", "trainers.tar", "shop.tar", "train/a.tar", "train/val/b.tar",
        "notes.txt", "train-2.tar.Z", "test.tgz", "test-1.tar.zst", "TEST.tar.sha256", "train.tar.index",
        "._train-1.tar", "train-00000-of-00001.tar", "cifar10_test.tar"})
    write(std::string("names/") + name, {});
  const TarFiles files = find_tar_files(path("names"));
  const auto names = [&](const std::vector<fs::path>& found) {
    std::vector<std::string> list;
    for (const fs::path& file : found) list.push_back(file.lexically_relative(path("names")).string());
    return list;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(files.train), (Names{"Train_1.TAR", "my-training-0.tar", "train/a.tar",
                                       "train-00000-of-00001.tar", "trainers.tar"}));
  EXPECT_EQ(names(files.test), (Names{"TEST.tar", "cifar10_test.tar"}));
  EXPECT_EQ(names(files.validation), (Names{"imagenet_validation-0.tar", "val/train.tar"}));
  EXPECT_EQ(names(files.others), (Names{"shop.tar"}));
  EXPECT_EQ(names(files.compressed), (Names{"test-1.tar.zst", "test.tgz", "train-2.tar.Z"}));
}

/// Names for labels, too.
TEST_F(PictureSetsTest, OfArchivesWithoutHalvesAFifthOfEachClassIsForTesting) {
  std::vector<std::string> archives(2);
  for (int i = 0; i < 20; ++i)
    archives[static_cast<std::size_t>(i / 12)] +=
        tar_entry(fmt::format("{}.png", i),
                  text_in(path(fmt::format("photos/train/class 0/{}.jpg", i % 4)))) +
        tar_entry(fmt::format("{}.cls", i), i % 2 == 0 ? "dog\n" : "Cat\n");
  for (std::size_t i = 0; i < 2; ++i) write_text(fmt::format("tars/shard{}.tar", i), archives[i] + kTarEnd);
  for (const char* name : {"tars/a.tgz", "tars/b.tar.gz"}) write(name, {1});
  const TrainTestData data = load("webdataset"), folders = load("pictures");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"Cat", "dog"}));
  EXPECT_EQ(
      data.remarks,
      (std::vector<std::string>{
          path("tars").string() +
              ": no archive is named after a test half, such as test-0.tar: a fifth of the "
              "samples becomes the test half",
          "left out 2 archives that are compressed: unpack them; the first is " + path("tars/a.tgz").string(),
          "labels in .cls are names, and classes are in their order: Cat, dog"}));
  EXPECT_EQ(std::ranges::count(data.train.labels, 0), 8);
  EXPECT_EQ(std::ranges::count(data.test.labels, 0), 2);
  EXPECT_EQ(data.test.size(), 4);
  std::vector<std::string> names;
  for (const Dataset* half : {&data.train, &data.test})
    for (std::int32_t i = 0; i < half->size(); ++i) {
      names.emplace_back(half->store->name_of(i));
      const int number = std::stoi(names.back());
      EXPECT_EQ(half->labels[static_cast<std::size_t>(i)], number % 2 == 0 ? 1 : 0);
      EXPECT_EQ(image_of(*half, i), image_of(folders.train, number % 4));
    }
  std::ranges::sort(names);
  EXPECT_EQ(std::unique(names.begin(), names.end()) - names.begin(), 20);
}

TEST_F(PictureSetsTest, OfArchivesWithListsOfLabelsAFifthOfAllIsForTesting) {
  std::string archive;
  for (int i = 0; i < 10; ++i)
    archive += tar_entry(fmt::format("{}.png", i), text_in(path("photos/train/class 0/0.jpg"))) +
               tar_entry(fmt::format("{}.cls", i), i % 2 == 0 ? "2" : "0 1");
  write_text("tars/all.tar", archive + kTarEnd);
  const TrainTestData data = load("webdataset");
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(data.train.label_sets, (std::vector<std::uint8_t>{0, 0, 1, /**/ 1, 1, 0}));
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{0, 1, 0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{1, 0})) << "samples 3 and 8, see SplitTest";
  EXPECT_EQ(data.test.store->name_of(1), "8.png");
  EXPECT_NE(fingerprint_of(data.train).labels, fingerprint_of(data.test).labels);
}

}  // namespace
}  // namespace lockstep::picture_sets_test
