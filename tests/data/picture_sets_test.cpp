// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets of pictures in folders, decoded as they are needed: the samples that convert makes of them, and no others.
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/normalisation.hpp"
#include "data/pictures/picture_store.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/leave_out.hpp"
#include "data/sets/set_formats.hpp"
#include "data/shared_set.hpp"
#include "tests/data/picture_sets_fixture.hpp"
#include "tests/support/messages.hpp"

#include <unistd.h>

namespace lockstep::picture_sets_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::bytes_of;
using test::image_of;
using test::text_in;

TEST_F(PictureSetsTest, FoldersAndArchivesHaveTheSamplesThatConvertWrites) {
  write_tars();
  for (const PictureFit fit : {PictureFit::kCrop, PictureFit::kPad, PictureFit::kSqueeze})
    for (const PictureColour colour : {PictureColour::kGrey, PictureColour::kRgb}) {
      const PictureForm form{.size = {4, 3}, .fit = fit, .colour = colour};
      convert_pictures(Env::posix(), {.from = path("photos").string(),
                                      .to = path("set").string(),
                                      .size = form.size,
                                      .fit = fit,
                                      .colour = colour,
                                      .split = {},
                                      .replace = true});
      const TrainTestData converted =
          load_dataset({.set = "shards", .root = path("set").string(), .in_memory = true});
      const TrainTestData folders = load("pictures", form), tars = load("webdataset", form);
      EXPECT_EQ(folders.class_names, converted.class_names);
      EXPECT_EQ(tars.class_names, (std::vector<std::string>{"0", "1", "2"}));
      expect_equal(folders, converted);
      expect_equal(tars, converted);
    }
}

TEST_F(PictureSetsTest, WhatBecameOfAPictureIsSaid) {
  const Dataset train = load_dataset(unmeasured()).train;
  const std::string first = text_in(path("photos/train/class 0/0.jpg"));
  write_text("photos/train/class 0/0.jpg", first.substr(0, first.size() - 9));
  write("photos/train/class 0/2.jpg", Bytes(text_in(path("photos/train/class 0/2.jpg")).size(), 'x'));
  fs::remove(path("photos/train/class 2/3.jpg"));
  const auto fails = [&](std::int32_t sample, std::initializer_list<std::string_view> parts) {
    expect_error<DataError>([&] { image_of(train, sample); }, parts);
  };
  fails(0, {"class 0/0.jpg: ", "bytes, and", "(sample 0 of pictures train)"});
  fails(2, {"class 0/2.jpg: neither PNG", "(sample 2 of pictures train)"});
  fs::remove(path("photos/train/class 0/3.jpg"));
  fs::create_symlink("3.jpg", path("photos/train/class 0/3.jpg"));
  expect_error<IoError>([&] { image_of(train, 3); },
                        {"class 0/3.jpg: cannot be opened: ", "(sample 3 of pictures train)"});
  fails(11, {"class 2/3.jpg: is not there any more", "(sample 11 of pictures train)"});
  EXPECT_NO_THROW(image_of(train, 1));
  write_text("photos/train/class 0/0.jpg", first);
  EXPECT_NO_THROW(image_of(train, 0)) << "it was mended";
  EXPECT_NE(fingerprint_of(load_dataset(unmeasured()).train), fingerprint_of(train));
}

TEST_F(PictureSetsTest, ItsOutlineAndFingerprintAreThoseOfTheFiles) {
  const DatasetOptions options{.set = "pictures", .root = path("photos").string(), .pictures = kForm};
  const SetOutline outline = outline_of(options);
  EXPECT_EQ(outline.shape, (ImageShape{3, 3, 4}));
  EXPECT_EQ(outline.classes, 3);
  EXPECT_EQ(outline.train_samples, 12);
  EXPECT_EQ(outline.test_samples, 12);
  EXPECT_EQ(outline.validation_samples, 0);
  EXPECT_TRUE(outline.on_disk);
  EXPECT_EQ(outline.remarks.size(), 1U);
  std::string files;
  for (const char* name :
       {"0/0", "0/1", "0/2", "0/3", "1/0", "1/1", "1/2", "1/3", "2/0", "2/1", "2/2", "2/3"}) {
    const std::string file = std::string("train/class ") + name + ".jpg";
    const std::uint64_t bytes = fs::file_size(path("photos/" + file));
    files += file + std::string(1, '\0') + std::string(reinterpret_cast<const char*>(&bytes), 8);
  }
  const auto digest = [&](const std::string& head) {
    const std::string text = head + files;
    return hex(sha256(std::as_bytes(std::span(text))));
  };
  for (const PictureColour colour : {PictureColour::kRgb, PictureColour::kGrey}) {
    PictureForm form = kForm;
    form.colour = colour;
    EXPECT_EQ(fingerprint_of(load("pictures", form).train).samples,
              digest(fmt::format("12 pictures, {} x 3 x 4, fit 1\n", channels_of(colour))));
  }
  EXPECT_EQ(fingerprint_of(load_dataset(unmeasured({})).train).samples,
            digest("12 pictures, 1 x 6 x 5, fit -1\n"));
}

TEST_F(PictureSetsTest, PicturesAreLeftOutByTheirNames) {
  const auto list = parse_leave_out("train/class 0/1.jpg\n2\n", "out.txt");
  DatasetOptions options = unmeasured();
  options.leave_out = std::make_shared<const LeaveOutList>(list);
  EXPECT_EQ(load_dataset(options).train.places, (std::vector<std::int32_t>{0, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

/// Also on the other ranks of a host.
TEST_F(PictureSetsTest, PicturesInMemoryKeepTheirNames) {
  DatasetOptions options = unmeasured();
  options.validation = {.samples = 2};
  const TrainTestData on_disk = load_dataset(options);
  options.in_memory = true;
  TrainTestData data = load_dataset(options);
  const auto memory = move_to_memory_file(data);
  ASSERT_NE(memory, nullptr);
  const TrainTestData theirs = set_in(memory);
  EXPECT_EQ(theirs.test.picture_name(5), "val/class 1/1.jpg");
  for (const auto& [half, expected] : {std::pair{&theirs.train, &on_disk.train},
                                       {&theirs.test, &on_disk.test},
                                       {&theirs.validation, &on_disk.validation}})
    for (std::int64_t i = 0; i < expected->size(); ++i)
      EXPECT_EQ(half->picture_name(i), expected->store->name_of(expected->place_in_file(i))) << i;
}

TEST(PictureListTest, AFileThatNoPictureHasIsRefused) {
  PictureList list;
  list.places = {"p"};
  list.add("a.png", 0, kMaxPictureFileBytes);
  EXPECT_EQ(list.path_of(0), "p/a.png");
  expect_error<DataError>([&] { list.add("b.png", 0, kMaxPictureFileBytes + 1); },
                          {"p/b.png: 268435457 bytes; at most 268435456 are read"});
}

TEST_F(PictureSetsTest, PicturesOfOneSizeNeedNoSize) {
  write_tars();
  EXPECT_EQ(outline_of({.set = "webdataset", .root = path("tars").string()}).shape, (ImageShape{1, 6, 5}));
  DatasetOptions options = unmeasured({});
  options.cache = path("cache");
  const TrainTestData data = load_dataset(options);
  EXPECT_EQ(data.train.shape, (ImageShape{1, 6, 5}));
  EXPECT_FALSE(fs::exists(path("cache"))) << "nothing was to be measured";
  expect_error<DataError>(
      [&] { image_of(data.train, 2); },
      {"class 0/2.jpg: 7 x 6 pixels, and the first picture has 5 x 6 (sample 2 of pictures train); scale"});
}

TEST_F(PictureSetsTest, MeasuredSumsAreKeptInTheCacheOfTheUser) {
  const Normalisation measured = load("pictures").normalisation;
  const fs::path folder = path("cache/sums");
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() != ".lock") files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all) << "others could hold its lock";
  const std::string kept = text_in(files[0]);
  EXPECT_TRUE(kept.starts_with(R"({"lockstep_sums":2,"of":")")) << kept;
  const auto link = path("link");  // a file that is written again is another one
  fs::create_hard_link(files[0], link);
  EXPECT_EQ(load("pictures").normalisation, measured);
  EXPECT_TRUE(fs::equivalent(files[0], link)) << "measured again";
  std::string impossible = kept.substr(0, kept.find('\n')), lacking = impossible;
  impossible.insert(impossible.find(R"("values":[)") + 10, "9");
  lacking.erase(lacking.rfind(','), lacking.rfind(']') - lacking.rfind(','));  // the last of the squares
  for (std::string* line : {&impossible, &lacking})
    *line += "\n" + hex(sha256(std::as_bytes(std::span(*line)))) + "\n";
  for (const std::string& other :
       {kept.substr(0, 40), kept + " ", std::string(5000, 'x'), std::string("1\n"), impossible, lacking}) {
    test::write_file(files[0], bytes_of(other));
    EXPECT_EQ(load("pictures").normalisation, measured) << other;
    EXPECT_EQ(text_in(files[0]), kept);
  }
  for (const auto& entry : fs::recursive_directory_iterator(path("photos")))
    EXPECT_TRUE(entry.is_directory() || entry.path().extension() == ".jpg") << entry.path();
  const fs::path damaged = path("photos/train/class 0/2.jpg");
  const auto time = fs::last_write_time(damaged);
  test::write_file(damaged, Bytes(text_in(damaged).size(), 'x'));
  fs::last_write_time(damaged, time);
  expect_error<DataError>([&] { load("pictures"); },
                          {"class 0/2.jpg", "; mend or remove it; a run that has"});
}

TEST_F(PictureSetsTest, WhatASetLeavesUnsaidIsForTheStart) {
  write("photos/train/class 0/list.txt", {1});
  write("photos/.DS_Store", {1});
  const TrainTestData data = load("pictures");
  ASSERT_EQ(data.remarks.size(), 2U);
  EXPECT_EQ(data.remarks[0], "val/ is the test half, since there is no test/");
  EXPECT_TRUE(contains(data.remarks[1], {"left out: 1 .txt file, 1 hidden file; the first is "}));
}

TEST_F(PictureSetsTest, PicturesOf16BitsAreCountedWhereAllAreRead) {
  const auto said_of = [&] {
    ::testing::internal::CaptureStderr();
    load("pictures");
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said_of().find("16 bits"), std::string::npos);
  for (const auto& [name, pictures] : {std::pair{"0.png", "1 picture"}, {"3.png", "2 pictures"}}) {
    test::write_file(path("photos/train/class 1") / name, testing::encode_png_16(testing::sheet(5, 6, 77)));
    const std::string said = said_of();
    EXPECT_TRUE(
        contains(said, {fmt::format("pictures train: {} of 16 bits a channel, rounded to 8", pictures)}));
  }
}

/// Those alone are read where the sums of all are kept.
TEST_F(PictureSetsTest, HeldOutPicturesOf16BitsAreNotTakenForAllOfThem) {
  for (int i = 0; i < 12; ++i)
    test::write_file(path(fmt::format("photos/train/class {}/{}.jpg", i / 4, i % 4)),
                     testing::encode_png_16(testing::sheet(5, 6, 77)));
  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    load_dataset({.set = "pictures",
                  .root = path("photos"),
                  .validation = {.samples = 2},
                  .pictures = kForm,
                  .cache = path("cache")});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_TRUE(contains(said(), {"pictures train: 12 pictures of 16 bits a channel"}));
  EXPECT_EQ(said().find("16 bits"), std::string::npos);
}

TEST_F(PictureSetsTest, WithoutACacheSumsAreMeasuredEachTime) {
  const Normalisation measured = load("pictures").normalisation;
  DatasetOptions options{.set = "pictures", .root = path("photos"), .pictures = kForm};
  for (const char* cache : {"", "/dev/null/none", "/proc/none"}) {
    options.cache = cache;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(load_dataset(options).normalisation, measured) << cache;
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("measured again at the next start: ") != said.npos, !options.cache.empty()) << said;
  }
}

/// A process waits for another that measures while that says so, and then measures, too.
TEST_F(PictureSetsTest, AProcessThatMeasuresAndGetsNoFurtherIsNotWaitedForWithoutEnd) {
  const TrainTestData data = load("pictures");
  const std::string file = path("kept/sums").string();
  fs::create_directory(path("kept"));
  const auto measure = [&](double patience) {
    return measured_sums(*data.train.store, data.train.shape, file, "key", patience).values;
  };
  auto claim = Env::posix().claim(file + ".lock");
  claim->write("process 42 on node7 has measured 3 of 9 pictures\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(measure(0.1), data.train.store->sums().values);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      contains(said, {file + ".lock: held by another process, which gets no further (process 42 on node7 has "
                             "measured 3 of 9 pictures); measuring here, too"}));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(measure(0.1), data.train.store->sums().values);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "what is kept is read at once";
  fs::remove(file);
  std::thread other([&] {
    for (int pictures = 4; pictures < 9; ++pictures) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      claim->write(fmt::format("process 42 on node7 has measured {} of 9 pictures\n", pictures));
    }
    claim.reset();
  });
  EXPECT_EQ(measure(60), data.train.store->sums().values);
  other.join();
  EXPECT_TRUE(
      contains(text_in(file + ".lock"),
               {fmt::format("process {} on {} has measured ", ::getpid(), host_name()), "of 12 pictures"}));
}

}  // namespace
}  // namespace lockstep::picture_sets_test
