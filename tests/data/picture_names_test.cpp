// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Notes that a set keeps of its pictures: a list of their names, and how they were fitted.
#include "common/error.hpp"
#include "data/sets/names.hpp"
#include "data/sets/shards.hpp"
#include "tests/data/conversion_fixture.hpp"

namespace lockstep::conversion_test {
namespace {

namespace fs = std::filesystem;

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

TEST_F(ConversionTest, DamagedListOfNamesIsAWarning) {
  const auto warning_of = [&](const std::string& text) {
    write_text("test-names.jsonl", text);
    const SampleNames found = read_sample_names(Env::posix(), path("test-names.jsonl"), 2);
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
  says("\"\"\n\"b\"\n", "line 1 is not a name");
  const std::string longest(32'766, 'x');
  EXPECT_EQ(warning_of("\"" + longest + "\"\n\"b\"\n"), "");
  says("\"" + longest + "x\"\n\"b\"\n", "line 1 is not a name");
  fs::remove(path("test-names.jsonl"));
  fs::create_directory(path("test-names.jsonl"));
  EXPECT_NE(read_sample_names(Env::posix(), path("test-names.jsonl"), 2).warning, "");
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
  fails("{\"lockstep_conversion\": \"2\", \"fit\": \"crop\"}", "no known `fit` recorded");
  fails("{\"fit\": \"crop\"}", "no known `fit` recorded");
  fails("", "no known `fit` recorded");
  cropped.fit = PictureFit::kSqueeze;
  cropped.replace = true;
  EXPECT_EQ(converted(cropped).fit, PictureFit::kSqueeze);
  EXPECT_FALSE(fs::exists(path("set/conversion.json")));
}

}  // namespace
}  // namespace lockstep::conversion_test
