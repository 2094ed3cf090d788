// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From folders of pictures to a set, and whatever may be in those folders.
#include "data/pictures/conversion.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/pictures/folders.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/hold_out.hpp"
#include "data/sets/names.hpp"
#include "data/sets/set_files.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/shards.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using namespace std::string_literals;

Bytes ppm(int width, int height, int red, int green, int blue) {
  const std::string head = "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  Bytes bytes(head.begin(), head.end());
  for (int i = 0; i < width * height; ++i)
    for (const int value : {red, green, blue}) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

/// Ten pictures in each of two classes, all of different colours.
class ConversionTest : public test::DirectoryTest {
 protected:
  ConversionTest() {
    for (int i = 0; i < 10; ++i) {
      write("pictures/ants/" + std::to_string(i) + ".ppm", ppm(4, 3, i, 0, 100));
      write("pictures/bees/" + std::to_string(i) + ".ppm", ppm(4, 3, 50 + i, 0, 200));
    }
  }
  ConversionOptions options() const {
    return {.from = path("pictures").string(), .to = path("set").string(), .size = {}, .split = {}};
  }
  static Conversion convert(const ConversionOptions& options) {
    return convert_pictures(Env::posix(), options);
  }
  TrainTestData converted(const ConversionOptions& options) const {
    convert(options);
    return load(options.to);
  }
  static TrainTestData load(const std::string& root) {
    return load_dataset({.set = "shards", .root = root, .in_memory = true});
  }
  template <typename E>
  void expect_failure(const ConversionOptions& options, std::initializer_list<std::string_view> parts) const {
    expect_error<E>([&] { convert(options); }, parts);
    EXPECT_TRUE(!fs::exists(options.to) || fs::is_empty(options.to)) << "something was left behind";
  }
  /// Folders that are not converted.
  template <typename E>
  void expect_refusal(const std::string& from, std::initializer_list<std::string_view> parts) const {
    expect_error<E>([&] { find_sorted_pictures(path(from), {}); }, parts);
  }
};

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

TEST_F(ConversionTest, NamesOfPicturesStandInTheOrderOfTheSamples) {
  const TrainTestData data = converted(options());
  for (const Dataset* half : {&data.train, &data.test}) {
    const auto list = path("set") / sample_names_file(half == &data.train ? "train" : "test");
    const SampleNames found = read_sample_names(Env::posix(), list, half->size());
    ASSERT_EQ(found.warning, "");
    for (std::size_t i = 0; i < found.names.size(); ++i) {
      const Pictures original = read_pictures((path("pictures") / found.names[i]).string());
      EXPECT_EQ(original[0].pixels[0], half->images[i * 12]) << found.names[i];
      EXPECT_EQ(found.names[i].starts_with("bees/"), half->labels[i] == 1);
    }
  }
}

TEST_F(ConversionTest, AnyNameIsOneLine) {
  const std::string hostile = "a\nb\"\x1b[2J\xff.ppm";
  write("pictures/ants/" + hostile, ppm(4, 3, 1, 2, 3));
  ConversionOptions chosen = options();
  chosen.split.test = {.samples = 1};
  const TrainTestData data = converted(chosen);
  const SampleNames found = read_sample_names(Env::posix(), path("set/train-names.jsonl"), data.train.size());
  const SampleNames others = read_sample_names(Env::posix(), path("set/test-names.jsonl"), data.test.size());
  const std::string kept = "ants/a\nb\"\x1b[2J\xef\xbf\xbd.ppm";  // invalid UTF-8 is replaced
  EXPECT_EQ(std::ranges::count(found.names, kept) + std::ranges::count(others.names, kept), 1);
}

TEST_F(ConversionTest, ImagesOfASetSayWhatTheyWereMadeOf) {
  write("set/t10k-images-idx3-ubyte", test::idx_file({3, 4, 3}));
  write_text("set/t10k-names.jsonl", "\"ants/1.ppm\"\n\"ants/2.ppm\"\n\"bees/3.ppm\"\n");
  const std::string images = path("set/t10k-images-idx3-ubyte").string();
  Pictures all = read_pictures(images), one = read_pictures(images + "[2]");
  EXPECT_EQ(all[0].original, "") << "nothing is looked up unasked";
  EXPECT_EQ(all.look_up_originals() + one.look_up_originals(), "");
  EXPECT_EQ(all[0].original, "ants/1.ppm");
  EXPECT_EQ(one[0].original, "bees/3.ppm");
  fs::remove(path("set/t10k-names.jsonl"));
  EXPECT_EQ(read_pictures(images).look_up_originals(), "") << "a set may have no list";
}

TEST_F(ConversionTest, DamagedListOfNamesIsAWarning) {
  const auto warning_of = [&](const std::string& text) {
    write_text("t10k-names.jsonl", text);
    const SampleNames found = read_sample_names(Env::posix(), path("t10k-names.jsonl"), 2);
    EXPECT_EQ(found.names.empty(), !found.warning.empty());
    return found.warning;
  };
  const auto says = [&](const std::string& text, const std::string& what) {
    const std::string warning = warning_of(text);
    EXPECT_TRUE(contains(warning, {what})) << text.substr(0, 50) << " -> " << warning;
  };
  EXPECT_EQ(warning_of("\"a\"\n\"b\"\n"), "");
  says("", "it names fewer than the 2 samples that there are");
  says("\"a\"\n", "it names fewer");
  says("\"a\"\n\"b\"\n\"c\"\n", "it names more");
  says("\"a\"\n\"b\"", "its last line has no end");
  says("\"a\"\n[[[[\n", "line 2 is not a name");
  says("\"a\"\n7\n", "line 2 is not a name");
  const std::string longest(32'766, 'x');
  EXPECT_EQ(warning_of("\"" + longest + "\"\n\"b\"\n"), "");
  says("\"" + longest + "x\"\n\"b\"\n", "line 1 is not a name");
  fs::remove(path("t10k-names.jsonl"));
  fs::create_directory(path("t10k-names.jsonl"));
  EXPECT_NE(read_sample_names(Env::posix(), path("t10k-names.jsonl"), 2).warning, "");
}

TEST_F(ConversionTest, ListsOfNamesLieBesideTheImages) {
  EXPECT_EQ(sample_names_in(path("set"), SetHalf::kTrain), path("set/train-names.jsonl"));
  EXPECT_EQ(sample_names_in(path("set"), SetHalf::kTest), path("set/t10k-names.jsonl"));
  write("set/test-names.jsonl", {1});
  EXPECT_EQ(sample_names_in(path("set"), SetHalf::kTest), path("set/test-names.jsonl"));
  EXPECT_EQ(sample_names_beside("set/t10k-images-idx3-ubyte.gz"), "set/t10k-names.jsonl");
  for (const char* other : {"set/-images-idx3-ubyte", "set/images"})
    EXPECT_EQ(sample_names_beside(other), "");
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

TEST_F(ConversionTest, TheFitIsRemembered) {
  ConversionOptions cropped = options();
  cropped.size = PictureSize{2, 2};
  cropped.fit = PictureFit::kCrop;
  EXPECT_EQ(converted(cropped).fit, PictureFit::kCrop);
  write_in_shards(Env::posix(), {.set = "shards", .root = cropped.to}, path("shards").string(), {});
  EXPECT_EQ(load_dataset({.set = "shards", .root = path("shards").string()}).fit, PictureFit::kCrop);
  const auto fails = [&](const std::string& text, const char* part) {
    write_text("set/conversion.json", text);
    expect_error<DataError>([&] { load(cropped.to); }, {"set/conversion.json: ", part});
  };
  fails("{\"lockstep_conversion\": 2, \"fit\": \"crop\"}", "version 2 of the format");
  fails("{\"lockstep_conversion\": 1, \"fit\": \"bend\"}", "no known `fit` recorded");
  fails("{\"fit\": \"crop\"}", "no known `fit` recorded");
  fails("", "no known `fit` recorded");
  cropped.fit = PictureFit::kSqueeze;
  cropped.replace = true;
  EXPECT_EQ(converted(cropped).fit, PictureFit::kSqueeze);
  EXPECT_FALSE(fs::exists(path("set/conversion.json")));
}

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
                            "--test-share and --test-count out"});
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

/// Nothing of one is left, be it in IDX files or in shards; what is not its own stays.
TEST_F(ConversionTest, ASetThatIsThereMakesWayIfItMay) {
  const auto names = {"train-images-idx3-ubyte",
                      "classes.txt",
                      "t10k-names.jsonl",
                      "validation-images-idx3-ubyte",
                      "t10k-labels-idx1-ubyte.gz",
                      "validation-names.jsonl",
                      "train-images-idx3-ubyte.partial"};
  for (const char* name : names) write("set/"s + name, {1, 2, 3});
  for (const char* other : {"zoo", "zoo.partial"}) write("set/"s + other, {1});
  const auto expect_refused = [&] {
    expect_error<UsageError>([&] { convert(options()); }, {"is there already; --force replaces the set"});
  };
  expect_refused();
  ConversionOptions again = options();
  again.replace = true;
  EXPECT_EQ(converted(again).train.size(), 16);
  for (const char* name : names) EXPECT_FALSE(fs::exists(path("set/"s + name))) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(path("set")), {}), 11) << "files of others stay";
  const auto written = fs::last_write_time(path("set/shards.index"));
  expect_refused();
  EXPECT_EQ(fs::last_write_time(path("set/shards.index")), written);
  again.colour = PictureColour::kRgb;
  EXPECT_EQ(converted(again).train.shape.channels, 3) << "the grey files must be gone";
}

TEST_F(ConversionTest, ALinkInTheWayIsNotFollowed) {
  write("victim", {7});
  fs::create_directories(path("set"));
  fs::create_symlink(path("victim"), path("set/shards.index"));
  ConversionOptions forced = options();
  forced.replace = true;
  expect_error<UsageError>([&] { convert(forced); }, {"set/shards.index: is in the way"});
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
  expect_failure<DataError>(options(), {"odd.ppm: 5 x 3 pixels, but", "has 4 x 3", "--size"});
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
  convert(again);
  const TrainTestData left = load(again.to);
  EXPECT_EQ(left.train.quick, without.train.quick) << "as if they had never been there";
  EXPECT_EQ(left.test.quick, without.test.quick);
}

TEST_F(ConversionTest, AClassOfDamagedPicturesIsNotLeftOut) {
  write("pictures/cows/1.jpg", {});
  write("pictures/cows/2.jpg", {});
  ConversionOptions skipping = options();
  skipping.skip_damaged = true;
  expect_failure<DataError>(skipping, {"cows: none of its pictures can be read"});
}

TEST_F(ConversionTest, WhatHappensToPicturesIsCounted) {
  write("pictures/ants/wide.ppm", ppm(8, 3, 9, 9, 9));
  write("set/train-00000.shard.partial", {1});  // left by an interrupted conversion: no set
  ConversionOptions scaled = options();
  scaled.size = PictureSize{8, 6};
  scaled.fit = PictureFit::kPad;
  std::size_t last = 0;
  scaled.on_progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(done, last + 1);
    EXPECT_EQ(all, 21U);
    last = done;
  };
  const Conversion done = convert(scaled);
  EXPECT_EQ(last, 21U);
  EXPECT_EQ(done.shape, (ImageShape{1, 6, 8}));
  EXPECT_EQ(done.reshaped, 1U);
  EXPECT_EQ(done.made_grey, 20U) << "all but one have colours";
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

TEST_F(ConversionTest, WhatIsNoPictureIsLeftOutAndCounted) {
  write("pictures/ants/Thumbs.db", {1});
  write("pictures/readme.txt", {1});
  write("pictures/ants/.hidden.png", {1});
  write("pictures/__MACOSX/ants/a.png", {1});
  write("pictures/bees/more/scan.TIF", {1});
  fs::create_symlink("/nowhere", path("pictures/ants/gone.png"));
  fs::create_symlink("/dev/zero", path("pictures/ants/zero.png"));
  fs::create_symlink(path("pictures/bees/1.ppm"), path("pictures/ants/link.ppm"));
  const Conversion done = convert(options());
  EXPECT_EQ(done.pictures.left_out, 7U);
  EXPECT_EQ(done.pictures.left_out_kinds, (std::map<std::string, std::size_t>{{".db file", 1},
                                                                              {".tif file", 1},
                                                                              {".txt file", 1},
                                                                              {"broken link", 1},
                                                                              {"device", 1},
                                                                              {"hidden file", 2}}));
  EXPECT_EQ(remarks_on(done.pictures),
            std::vector<std::string>{"left out: 1 .db file, 1 .tif file (not read: save as PNG), 1 .txt "
                                     "file, 1 broken link, 1 device, 2 hidden files; the first is " +
                                     path("pictures/__MACOSX").string()});
  write("pictures/cows/1.tiff", {1});
  expect_refusal<MissingDataError>(
      "pictures", {"cows: holds no pictures", "but .tiff files, which are not read; save them"});
  EXPECT_EQ(done.pictures.train.size() + done.pictures.test.size(), 21U) << "a link to a picture is followed";
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
  EXPECT_EQ(kind_of(path("names/a")), "file without a format's ending");
  EXPECT_EQ(kind_of(path("names")), "folder");
  expect_error<MissingDataError>([&] { entries_of(path("names/a")); }, {"names/a: no such folder"});
  expect_error<MissingDataError>([&] { find_pictures(path("names")); },
                                 {"names: holds no pictures (png, jpg,"});
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
  expect_failure<MissingDataError>(options(), {"cows: holds no pictures"});
  fs::remove_all(path("pictures/cows"));
  fs::remove_all(path("pictures/bees"));
  expect_failure<DataError>(options(), {"pictures: 'ants' is the only folder of pictures"});
}

TEST_F(ConversionTest, ASetLiesInADirectoryApartFromThePictures) {
  write("file", {1});
  for (const auto& [to, part] : {std::pair{"pictures", "would be taken for a class"},
                                 {"pictures/out", "would be taken for a class"},
                                 {"pictures/../pictures/ants/out", "would be taken for a class"},
                                 {"file", "file: is not a directory"}}) {
    ConversionOptions chosen = options();
    chosen.to = path(to).string();
    expect_error<UsageError>([&] { convert(chosen); }, {part});
  }
}

}  // namespace
}  // namespace lockstep
