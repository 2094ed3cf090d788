// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A report of a model: its layers, its filters and its mistakes as pictures.
#include "data/dataset.hpp"
#include "data/pictures/picture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "tests/trainer/reports/run_folder.hpp"
#include "trainer/reports/report.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Inverse of base64, without its end.
std::vector<std::uint8_t> decoded(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0, count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<std::uint8_t>(bits >> (count -= 8) & 255));
  }
  return bytes;
}

void expect_picture(const Json& uri, const Picture& picture) {
  const std::string text = uri, head = "data:image/png;base64,";
  ASSERT_TRUE(text.starts_with(head)) << text;
  EXPECT_EQ((text.size() - head.size()) % 4, 0U);
  EXPECT_TRUE(std::ranges::equal(decoded(text.substr(head.size())), write_png(picture)));
}

/// A network of four inputs and two classes.
CheckpointState small_model() {
  CheckpointState state = make_state(7);
  state.facts.model = {{"set", "idx"},    {"mean", "0.5"},
                       {"std", "0.25"},   {"classes", "2"},
                       {"channels", "1"}, {"height", "2"},
                       {"width", "2"},    {"yaml", "layers:\n  - linear: {name: fc, out: classes}\n"}};
  state.facts.data = {{"train_samples", "1"},     {"train_samples_sha256", "a"}, {"train_labels_sha256", "b"},
                      {"test_samples", "2"},      {"test_samples_sha256", "c"},  {"test_labels_sha256", "d"},
                      {"class_names", "cat\ndog"}};
  state.facts.job.clear();
  state.facts.parameters = {{"fc.weight", {2, 4}}, {"fc.bias", {2}}};
  state.facts.gradient_units.exponents = {-40, 77};
  state.weights = {1, 0, 0, 0, 0, -1, 0, 0, 0, 0};
  state.optimizer.clear();
  return state;
}

/// It answers both of two samples with the first class.
TEST(ReportModelTest, FiltersAndClassesAreThoseOfTheNewestCheckpoint) {
  const testing::RunFolders folders;
  CheckpointState state = small_model();
  const std::string run = folders.run("a", {testing::start_line()});
  const std::string checkpoint = save_checkpoint(Env::posix(), run, state);
  TrainTestData data;
  data.class_names = {"cat", "dog"};
  data.test.name = "idx test";
  data.test.shape = {1, 2, 2};
  data.test.classes = 2;
  data.test.labels = {0, 1};
  data.test.features = AlignedBuffer<float>(8);
  data.test.features[0] = data.test.features[4] = 1;
  ReportOptions options{.loaded = &data};
  Json json = {{"notes", Json::array()}};
  add_model(json, run, options);
  EXPECT_EQ(json["notes"], Json::array());
  EXPECT_EQ(json["model"]["parameters"], 10);
  ASSERT_EQ(json["model"]["layers"].size(), 2U);
  EXPECT_EQ(json["model"]["layers"][0]["name"], "input");
  EXPECT_EQ(json["model"]["layers"][0]["parameters"], 0);
  EXPECT_EQ(json["model"]["layers"][0]["from"], Json::array());
  EXPECT_EQ(json["model"]["layers"][1]["name"], "fc");
  EXPECT_EQ(json["model"]["layers"][1]["parameters"], 10);
  EXPECT_EQ(json["model"]["layers"][1]["from"], Json::array({0}));
  EXPECT_EQ(json["filters"]["what"], "fc.weight: 2 of 2, white is zero, red above it, blue below");
  ASSERT_EQ(json["filters"]["pictures"].size(), 2U);
  const std::vector<std::vector<std::uint8_t>> pixels = {
      {217, 255, 255, 255, 72, 255, 255, 255, 15, 255, 255, 255},
      {255, 37, 255, 255, 255, 99, 255, 255, 255, 235, 255, 255}};
  for (std::size_t i = 0; i < 2; ++i)
    expect_picture(json["filters"]["pictures"][i],
                   {.name = "", .width = 2, .height = 2, .channels = 3, .pixels = pixels[i]});
  const Json& classes = json["classes"];
  EXPECT_EQ(classes["data"], "idx test");
  EXPECT_EQ(classes["checkpoint"], checkpoint);
  EXPECT_EQ(classes["samples"], 2);
  EXPECT_EQ(classes["correct"], 1);
  EXPECT_EQ(classes["confusion"], Json::parse("[[1, 0], [1, 0]]"));
  EXPECT_EQ(classes["classes"][1]["name"], "dog");
  ASSERT_EQ(classes["mistakes"].size(), 1U);
  EXPECT_EQ(classes["mistakes"][0]["sample"], 1);
  EXPECT_TRUE(classes["mistakes"][0].at("picture").is_null());
  const auto note_of = [&] {
    Json other = {{"notes", Json::array()}};
    add_model(other, run, options);
    EXPECT_FALSE(other.contains("classes"));
    return other["notes"];
  };
  data.test.classes = 3;
  EXPECT_EQ(note_of(), Json::array({"the data have another shape than its own"}));
  data.test.classes = 2;
  options.class_seconds = std::chrono::seconds(-1);
  EXPECT_EQ(note_of(),
            Json::array({"the classes take more than -1 s to evaluate: 'lockstep report' has them"}));
  options.class_seconds = std::chrono::hours(1);
  options.most_classes = 1;
  EXPECT_EQ(note_of(),
            Json::array({"2 classes are more than a run evaluates at its end: 'lockstep report' has them"}));
  std::filesystem::remove_all(checkpoint);
  EXPECT_EQ(note_of().size(), 1U);
  for (const auto& [height, width] : {std::pair(3, 1), {1, 4}}) {
    state.facts.model["height"] = std::to_string(height), state.facts.model["width"] = std::to_string(width);
    const auto inputs = static_cast<std::size_t>(height * width);
    state.facts.parameters[0].shape = {2, inputs};
    state.weights.assign(2 * inputs + 2, 1);
    save_checkpoint(Env::posix(), run, state);
    Json narrow = {{"notes", Json::array()}};
    add_model(narrow, run, options);
    EXPECT_EQ(narrow["model"]["parameters"], state.weights.size());
    EXPECT_FALSE(narrow.contains("filters")) << "too few pixels to see anything, or a table's columns";
    std::filesystem::remove_all(checkpoint);
  }
}

/// A weight is as bright as its share of the largest one of its filter; what is zero is grey.
TEST(ReportModelTest, FiltersOfColouredPicturesAndMistakesHaveTheirColours) {
  const testing::RunFolders folders;
  CheckpointState state = small_model();
  state.facts.model["channels"] = "3";
  state.facts.parameters[0].shape = {2, 12};
  state.weights.assign(26, 0);
  state.weights[0] = 1, state.weights[11] = -0.5F;
  const std::string run = folders.run("a", {testing::start_line()});
  save_checkpoint(Env::posix(), run, state);
  TrainTestData data;
  data.class_names = {"cat", "dog"};
  data.test.shape = {3, 2, 2};
  data.test.classes = 2;
  data.test.labels = {0};
  data.test.images = AlignedBuffer<std::uint8_t>(12);
  for (std::size_t i = 0; i < 12; ++i) data.test.images[i] = static_cast<std::uint8_t>(20 * i);
  data.test.scales = scales_of({.mean = {0}, .std = {1}}, 3);
  Json json = {{"notes", Json::array()}};
  add_model(json, run, {.loaded = &data});
  EXPECT_EQ(json["filters"]["what"], "fc.weight: 2 of 2, each as the colours that it answers to");
  Picture picture{.name = "", .width = 2, .height = 2, .channels = 3, .pixels = {}};
  picture.pixels.assign(12, 128);
  expect_picture(json["filters"]["pictures"][1], picture);
  picture.pixels[0] = 255, picture.pixels[11] = 64;
  expect_picture(json["filters"]["pictures"][0], picture);
  std::ranges::copy(data.test.images.span(), picture.pixels.begin());
  expect_picture(json["classes"]["mistakes"][0]["picture"], picture);
}

/// Three rows of two pixels in two channels, of which the first one is shown.
TEST(ReportModelTest, FiltersOfAConvolutionHaveItsHeightAndWidth) {
  const testing::RunFolders folders;
  CheckpointState state = small_model();
  state.facts.model["channels"] = "2", state.facts.model["height"] = "3";
  state.facts.model["yaml"] =
      "layers:\n  - conv2d: {name: conv, out: 1, kernel: [3, 2]}\n  - linear: {name: fc, out: classes}\n";
  state.facts.parameters = {
      {"conv.weight", {1, 2, 3, 2}}, {"conv.bias", {1}}, {"fc.weight", {2, 1}}, {"fc.bias", {2}}};
  state.facts.gradient_units.exponents.assign(4, -40);
  state.weights.assign(12 + 1 + 2 + 2, 0);
  state.weights[0] = state.weights[4] = 1, state.weights[1] = -1;
  std::fill_n(state.weights.begin() + 6, 6, 1.0F);
  const std::string run = folders.run("a", {testing::start_line()});
  save_checkpoint(Env::posix(), run, state);
  TrainTestData data;
  data.class_names = {"cat", "dog"};
  data.test.shape = {2, 3, 2};
  data.test.classes = 2;
  data.test.labels = {1};
  data.test.images = AlignedBuffer<std::uint8_t>(12);
  for (std::size_t i = 0; i < 12; ++i) data.test.images[i] = static_cast<std::uint8_t>(20 * i);
  data.test.scales = scales_of({.mean = {0}, .std = {1}}, 2);
  Json json = {{"notes", Json::array()}};
  add_model(json, run, {.loaded = &data});
  EXPECT_EQ(json["notes"], Json::array());
  EXPECT_EQ(json["filters"]["what"],
            "conv.weight: 1 of 1, white is zero, red above it, blue below; the first channel");
  ASSERT_EQ(json["filters"]["pictures"].size(), 1U);
  expect_picture(json["filters"]["pictures"][0], {.name = "",
                                                  .width = 2,
                                                  .height = 3,
                                                  .channels = 3,
                                                  .pixels = {217, 37, 255, 255, 217, 255, 72, 99, 255, 255,
                                                             72, 255, 15, 235, 255, 255, 15, 255}});
  ASSERT_EQ(json["classes"]["mistakes"].size(), 1U);
  expect_picture(json["classes"]["mistakes"][0]["picture"],
                 {.name = "", .width = 2, .height = 3, .channels = 1, .pixels = {0, 20, 40, 60, 80, 100}});
}

TEST(ReportModelTest, OfManyFiltersSixtyFourAreShown) {
  const testing::RunFolders folders;
  CheckpointState state = small_model();
  state.facts.model["yaml"] =
      "layers:\n  - linear: {name: in, out: 65}\n  - relu\n  - add: in\n  - linear: {name: fc, out: "
      "classes}\n";
  state.facts.parameters = {
      {"in.weight", {65, 4}}, {"in.bias", {65}}, {"fc.weight", {2, 65}}, {"fc.bias", {2}}};
  state.facts.gradient_units.exponents.assign(4, -40);
  state.weights.assign(65 * 5 + 2 * 66, 1);
  const std::string run = folders.run("a", {testing::start_line()});
  save_checkpoint(Env::posix(), run, state);
  const TrainTestData others;
  Json json = {{"notes", Json::array()}};
  add_model(json, run, {.loaded = &others});
  EXPECT_EQ(json["filters"]["what"], "in.weight: 64 of 65, white is zero, red above it, blue below");
  EXPECT_EQ(json["filters"]["pictures"].size(), 64U);
  EXPECT_EQ(json["model"]["layers"][3]["from"], Json::array({2, 1})) << "the layer before it, and the branch";
}

/// The page of so many takes gigabytes: a number for each class and each answer.
TEST(ReportModelTest, ARunWritesNoPageOfThousandsOfClasses) {
  constexpr std::size_t kManyClasses = 2'001;
  const testing::RunFolders folders;
  CheckpointState state = small_model();
  state.facts.model["classes"] = std::to_string(kManyClasses);
  state.facts.parameters = {{"fc.weight", {kManyClasses, 4}}, {"fc.bias", {kManyClasses}}};
  state.weights.assign(kManyClasses * 5, 1);
  const std::string run = folders.run("a", {testing::start_line()});
  save_checkpoint(Env::posix(), run, state);
  TrainTestData data;
  data.test.shape = {1, 2, 2};
  data.test.classes = kManyClasses;
  data.test.labels = {0};
  data.test.features = AlignedBuffer<float>(4);
  for (std::size_t c = 0; c < kManyClasses; ++c) data.class_names.push_back(std::to_string(c));
  write_report_of_run(run, data, 1);
  const auto page = Env::posix().read(run + "/report.html");
  EXPECT_LT(page.size(), 1'000'000U);
  test::expect_words(std::string(as_text(page)), {"2,001 classes are more than a run evaluates at its end"});
}

TEST(ReportModelTest, ClassesOfOtherDataAreCalledSo) {
  const testing::RunFolders folders;
  for (const std::string half : {"train", "t10k"}) {
    folders.write_idx("other/" + half + "-images-idx3-ubyte", {2, 2, 2}, "pictures");
    folders.write_idx("other/" + half + "-labels-idx1-ubyte", {2}, {0, 1});
  }
  folders.write("other/test-names.jsonl", "torn");
  folders.write("other/classes.txt", "cat\ndog\n");
  const std::string run = folders.run("a", {testing::start_line()});
  save_checkpoint(Env::posix(), run, small_model());
  Json json = {{"notes", Json::array()}};
  add_model(json, run, {.data = folders.path("other")});
  ASSERT_EQ(json["notes"].size(), 1U);
  test::expect_words(json["notes"][0].get<std::string>(), {"test-names.jsonl: its last line has no end"});
  EXPECT_EQ(json["classes"]["samples"], 2);
  ASSERT_EQ(json["classes"]["mistakes"].size(), 1U);
  expect_picture(json["classes"]["mistakes"][0]["picture"],
                 {.name = "", .width = 2, .height = 2, .channels = 1, .pixels = {'p', 'i', 'c', 't'}});
  test::expect_words(
      json["classes"]["note"].get<std::string>(),
      {"classes and mistakes are of " + folders.path("other") + ", not what it was trained on: ",
       "(1 then, 2 now)"});
}

}  // namespace
}  // namespace lockstep
