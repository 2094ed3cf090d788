// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From folders of pictures to a set: its samples, halves and names, and what is told of the pictures.
#include "data/pictures/conversion.hpp"

#include "common/error.hpp"
#include "data/set_fingerprints.hpp"
#include "tests/data/conversion_fixture.hpp"
#include "tests/data/picture_fixture.hpp"

namespace lockstep::conversion_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using namespace std::string_literals;

TEST_F(ConversionTest, FoldersBecomeClassesAndAFifthOfEachIsForTesting) {
  ConversionOptions colour = options();
  colour.colour = PictureColour::kRgb;
  const TrainTestData data = converted(colour);
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"ants", "bees"}));
  EXPECT_EQ(data.train.shape, (ImageShape{3, 3, 4}));
  EXPECT_EQ(data.train.size(), 16);
  EXPECT_EQ(data.test.size(), 4);
  EXPECT_EQ(std::count(data.test.labels.begin(), data.test.labels.end(), 1), 2);
  std::set<int> reds;  // every picture is in one of the halves, once
  for (const Dataset* half : {&data.train, &data.test}) {
    for (std::size_t i = 0; i < half->labels.size(); ++i) {
      const int red = half->images[i * 36];
      EXPECT_TRUE(reds.insert(red).second) << red;
      EXPECT_EQ(half->labels[i], red >= 50 ? 1 : 0);
      EXPECT_EQ(half->images[i * 36 + 12], 0);
      EXPECT_EQ(half->images[i * 36 + 24], red >= 50 ? 200 : 100);
    }
  }
  EXPECT_EQ(reds.size(), 20U);
}

/// The first byte of each image, and its label.
std::vector<std::pair<int, int>> samples_of(const Dataset& half) {
  std::vector<std::pair<int, int>> samples;
  for (std::int32_t i = 0; i < half.size(); ++i)
    samples.emplace_back(test::image_of(half, i)[0], half.labels[static_cast<std::size_t>(i)]);
  return samples;
}

TEST_F(ConversionTest, AValidationHalfIsTakenFromTheOthersToTrainOn) {
  ConversionOptions three = options();
  three.colour = PictureColour::kRgb;
  const TrainTestData two = converted(three);
  three.replace = true;
  three.split.validation = {.share = 0.3};
  convert(three);
  const DatasetOptions with{.set = "shards", .root = three.to, .validation = {.is_files = true}};
  const TrainTestData data = load_dataset(with);
  EXPECT_EQ(samples_of(data.test), samples_of(two.test));
  EXPECT_EQ(data.validation.size(), 6);
  EXPECT_EQ(std::ranges::count(data.validation.labels, 1), 3);
  std::set<std::pair<int, int>> all;
  for (const Dataset* half : {&data.train, &data.test, &data.validation})
    for (const auto& sample : samples_of(*half)) EXPECT_TRUE(all.insert(sample).second);
  EXPECT_EQ(all.size(), 20U);
  EXPECT_EQ(data.validation.scales.shift, data.train.scales.shift);
  const TrainTestData without = load_dataset({.set = "shards", .root = three.to});
  EXPECT_EQ(without.validation.size(), 0);
  EXPECT_TRUE(without.has_validation_half && data.has_validation_half && !two.has_validation_half);
  EXPECT_EQ(fingerprints_of(without).train, fingerprints_of(data).train);
  EXPECT_EQ(fingerprints_of(data).validation, fingerprint_of(data.validation));
  EXPECT_EQ(fingerprints_of(without).validation.samples, "");

  three.split.validation = {};
  EXPECT_EQ(samples_of(converted(three).train), samples_of(two.train));
  EXPECT_FALSE(fs::exists(path("set/validation-00000.shard"))) << "the old half must not stay";
  expect_error<DatasetOptionError>([&] { load_dataset(with); },
                                   {"validation: files: the set has no validation"});
  three.split.validation = {.samples = 8};
  expect_error<DataError>([&] { convert(three); }, {"2 of its 10", "testing and 8 for validation, and none"});
}

/// Nothing of one is left, be it in IDX files or in shards; what is not its own stays.
TEST_F(ConversionTest, ASetThatIsThereMakesWayIfItMay) {
  const auto names = {"train-images-idx3-ubyte",      "classes.txt",
                      "validation-images-idx3-ubyte", "t10k-labels-idx1-ubyte.gz",
                      "validation-names.jsonl",       "train-images-idx3-ubyte.partial"};
  for (const char* name : names) write("set/"s + name, {1, 2, 3});
  for (const char* other : {"zoo", "zoo.partial", "classes.txt.my-copy"}) write("set/"s + other, {1});
  const auto expect_refused = [&] {
    expect_error<UsageError>([&] { convert(options()); }, {"is there already; --force replaces the set"});
  };
  expect_refused();
  ConversionOptions again = options();
  again.replace = true;
  EXPECT_EQ(converted(again).train.size(), 16);
  for (const char* name : names) EXPECT_FALSE(fs::exists(path("set/"s + name))) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(path("set")), {}), 12) << "files of others stay";
  const auto written = fs::last_write_time(path("set/shards.index"));
  expect_refused();
  EXPECT_EQ(fs::last_write_time(path("set/shards.index")), written);
  again.colour = PictureColour::kRgb;
  EXPECT_EQ(converted(again).train.shape.channels, 3) << "the grey files must be gone";
}

TEST_F(ConversionTest, ALinkInTheWayIsNotFollowed) {
  write("victim", {7});
  write("set/shards.index", {1});
  fs::create_symlink(path("victim"), path("set/classes.txt"));
  ConversionOptions forced = options();
  forced.replace = true;
  expect_error<UsageError>([&] { convert(forced); }, {"set/classes.txt: is in the way, and no regular file"});
  EXPECT_EQ(fs::file_size(path("victim")), 1U);
}

TEST_F(ConversionTest, OneConversionAtATimeWorksInADirectoryWhichMayBeNew) {
  ConversionOptions deep = options();
  deep.to = path("new/and/deep").string();
  EXPECT_EQ(converted(deep).train.size(), 16);
  const auto other = Env::posix().claim((path("new/and/deep") / ".convert.lock").string());
  ASSERT_NE(other, nullptr);
  deep.replace = true;
  expect_error<IoError>([&] { convert(deep); }, {"deep: another conversion is writing there; wait for it"});
}

TEST_F(ConversionTest, PicturesOfDifferentSizesAreAnErrorUnlessTheyAreScaled) {
  write("pictures/bees/odd.ppm", ppm(5, 3, 1, 2, 3));
  expect_failure<DataError>(options(), {"odd.ppm: 5 x 3 pixels, but ", ".ppm has 4 x 3; say --size"});
}

TEST_F(ConversionTest, ADamagedPictureIsNamed) {
  write("pictures/bees/half.png", Bytes{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0});
  expect_failure<DataError>(options(), {"half.png: damaged PNG"});
  for (const char* name : {"!0.jpg", "!1.jpg", "!2.jpg"}) write("pictures/ants/"s + name, {});
  try {
    convert(options());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DamagedPicturesError& error) {
    EXPECT_EQ(error.pictures().size(), 4U) << "each once, also those that the shape was looked for in";
  }
  for (const char* name : {"!0.jpg", "!1.jpg", "!2.jpg"}) fs::remove(path("pictures/ants/"s + name));
  write("pictures/bees/half.png", test::idx_file({2, 4, 3}));
  expect_failure<DataError>(options(), {"half.png: is an IDX file"});
}

/// Cut short, of another format than its name says, empty, no picture at all. Each in the middle of a class.
TEST_F(ConversionTest, AllDamagedPicturesAreToldAtOnceOrLeftOut) {
  const TrainTestData without = converted(options());
  Bytes cut = ppm(4, 3, 1, 2, 3);
  cut.resize(20);
  write("pictures/ants/4-cut.ppm", cut);
  write("pictures/ants/5-empty.jpg", {});
  write_text("pictures/bees/4-page.png", "<html>not found</html>");
  write("pictures/bees/5-misnamed.jpeg", ppm(4, 3, 77, 0, 0));  // goes by its contents
  ConversionOptions again = options();
  again.replace = true;
  again.threads = 3;
  try {
    convert(again);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DamagedPicturesError& error) {
    std::vector<std::string> names;
    for (const DamagedPicture& picture : error.pictures()) {
      names.push_back(picture.path.filename());
      EXPECT_TRUE(picture.reason.starts_with(picture.path.string())) << picture.reason;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"4-cut.ppm", "5-empty.jpg", "4-page.png"}));
    EXPECT_TRUE(std::string(error.what()).starts_with("3 pictures cannot be read, the first of them "))
        << error.what();
  }
  EXPECT_EQ(load(again.to).train.quick, without.train.quick) << "the old set stays";
  again.skip_damaged = true;
  const Conversion done = convert(again);
  EXPECT_EQ(done.damaged.size(), 3U);
  EXPECT_EQ(done.pictures.train.size() + done.pictures.test.size(), 21U);
  fs::remove(path("pictures/bees/5-misnamed.jpeg"));
  EXPECT_EQ(convert(again).reshaped, 0U);
  const TrainTestData left = load(again.to);
  EXPECT_EQ(left.train.quick, without.train.quick) << "as if they had never been there";
  EXPECT_EQ(left.test.quick, without.test.quick);
}

TEST_F(ConversionTest, DamagedPicturesAreToldInTheOrderOfTheirPaths) {
  fs::create_directories(path("halves"));
  fs::rename(path("pictures"), path("halves/train"));
  write("halves/test/ants/y.ppm", ppm(4, 3, 1, 2, 3));
  for (const char* half : {"train", "test"}) write("halves/"s + half + "/ants/!.jpg", {});
  ConversionOptions from_halves = options();
  from_halves.from = path("halves").string();
  try {
    convert(from_halves);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DamagedPicturesError& error) {
    ASSERT_EQ(error.pictures().size(), 2U);
    EXPECT_EQ(error.pictures()[0].path, path("halves/test/ants/!.jpg"));
  }
}

TEST_F(ConversionTest, WhatHappensToPicturesIsCounted) {
  write("pictures/ants/wide.ppm", ppm(8, 3, 9, 9, 9));
  write("pictures/ants/red.ppm", ppm(4, 3, 5, 0, 0));
  write("set/train-00000.shard.partial", {1});  // left by an interrupted conversion: no set
  ConversionOptions scaled = options();
  scaled.size = PictureSize{8, 6};
  scaled.fit = PictureFit::kPad;
  std::size_t last = 0;
  scaled.on_progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(done, last + 1);
    EXPECT_EQ(all, 22U);
    last = done;
  };
  const Conversion done = convert(scaled);
  EXPECT_EQ(last, 22U);
  EXPECT_EQ(done.shape, (ImageShape{1, 6, 8}));
  EXPECT_EQ(done.reshaped, 1U);
  EXPECT_EQ(done.made_grey, 21U) << "all but one have colours";
  EXPECT_EQ(done.had_16_bits, 0U);
  write("pictures/ants/fine.png", testing::encode_png_16(testing::sheet(4, 3, 9)));
  scaled.replace = true;
  scaled.colour = PictureColour::kRgb;
  scaled.on_progress = {};
  const Conversion coloured = convert(scaled);
  EXPECT_EQ(coloured.made_grey, 0U);
  EXPECT_EQ(coloured.had_16_bits, 1U);
}

TEST_F(ConversionTest, ThereMayBeMoreThan256Classes) {
  for (int i = 0; i < 300; ++i)
    for (const char* name : {"a.ppm", "b.ppm"})
      write("pictures/c" + std::to_string(i) + "/" + name, ppm(4, 3, i % 256, 1, 2));
  const TrainTestData data = converted(options());
  EXPECT_EQ(data.class_names.size(), 302U);
  EXPECT_EQ(std::ranges::max(data.train.labels), 301);
}

TEST_F(ConversionTest, AnyNumberOfThreadsWritesTheSameSet) {
  const TrainTestData one = converted(options());
  for (const int threads : {2, 7, 64}) {
    ConversionOptions several = options();
    several.threads = threads;
    several.replace = true;
    const TrainTestData data = converted(several);
    EXPECT_EQ(data.train.quick, one.train.quick) << threads;
    EXPECT_EQ(data.test.quick, one.test.quick) << threads;
  }
}

TEST_F(ConversionTest, ASetLiesInADirectoryApartFromThePictures) {
  write("file", {1});
  for (const auto& [to, part] : {std::pair{"pictures", "would be taken for a class"},
                                 {"pictures/out", "pictures/out: lies in "},
                                 {"pictures/../pictures/ants/out", "would be taken for a class"},
                                 {"file", "file: is not a directory"}}) {
    ConversionOptions chosen = options();
    chosen.to = path(to).string();
    expect_error<UsageError>([&] { convert(chosen); }, {part});
  }
}

}  // namespace
}  // namespace lockstep::conversion_test
