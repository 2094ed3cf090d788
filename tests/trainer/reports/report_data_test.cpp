// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The document of a run of a few lines has the numbers of a calculation by hand.
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

Json document_of(const std::vector<std::string>& lines) {
  const testing::RunFolders folders;
  const Json report = collect_report(Env::posix(), {folders.run("a", lines) + "/"}, {.models = false});
  EXPECT_EQ(report["runs"][0]["name"], "a");
  return report.at("runs").at(0);
}

/// Two epochs of two ranks, over the end of a month. A second start took the last 10,000 samples of the later one. A
/// third epoch, of three ranks, has no time, and the last start took none of its steps.
TEST(ReportDataTest, EpochsAddUpToTheRun) {
  const Json run = document_of(
      {R"({"event":"start","time":"2026-02-28T23:59:59.500Z","world":2})",
       R"({"event":"epoch","time":"2026-03-01T00:00:01.250Z","epoch":1,"step":5,"train_samples":60000,)"
       R"("train_seconds":1.5,"samples_per_second":40000,"rank_busy_seconds":[1,2],"rank_exposed_seconds":[0.25,0.5]})",
       R"({"event":"epoch","time":"2026-03-01T01:02:03.500Z","epoch":2,"step":10,"train_samples":60000,)"
       R"("train_seconds":0.5,"samples_per_second":20000,"rank_busy_seconds":[0.5,4],"rank_exposed_seconds":[0.25,1]})",
       R"({"event":"epoch","epoch":3,"step":15,"train_samples":60000,"train_seconds":1e-7,"test_accuracy":0.5,)"
       R"("validation_accuracy":0.25,"rank_busy_seconds":[1,1,1],"rank_exposed_seconds":[0,0,8]})"});
  EXPECT_EQ(run["samples_per_second"], 35000);
  EXPECT_EQ(run["ranks"], Json::parse(R"([{"busy_seconds": 2.5, "exposed_seconds": 0.5},
                                          {"busy_seconds": 7.0, "exposed_seconds": 1.5},
                                          {"busy_seconds": 1.0, "exposed_seconds": 8.0}])"));
  EXPECT_EQ(run["best"], Json::parse(R"({"epoch": 3, "step": 15, "accuracy": 0.25, "of": "validation"})"));
  const Json& epochs = run["curves"]["epoch"];
  EXPECT_EQ(epochs["step"], Json::parse("[5, 10, 15]"));
  EXPECT_EQ(epochs["seconds"], Json::parse("[1.75, 3724, null]"));
  EXPECT_EQ(epochs["test_accuracy"], Json::parse("[null, null, 0.5]"));
  EXPECT_FALSE(epochs.contains("swa_test_loss")) << "nothing is known of it";
}

TEST(ReportDataTest, WholeNumbersAreCountsBelowALimit) {
  const Json run = document_of({testing::start_line(), R"({"event":"step","step":1,"loss":999999999999999})",
                                R"({"event":"step","step":2,"loss":1500000000000000})"});
  const Json& losses = run.at("curves").at("step").at("loss");
  EXPECT_TRUE(losses.at(0).is_number_integer());
  EXPECT_TRUE(losses.at(1).is_number_float());
}

TEST(ReportDataTest, WhatChartsDrawIsRead) {
  std::vector<std::string> lines = {testing::start_line()};
  std::vector<std::pair<std::string, std::string>> drawn;
  for (const Json& chart : charts_json())
    for (const Json& curve : chart["curves"]) {
      drawn.emplace_back(curve["events"], curve["column"]);
      lines.push_back(fmt::format(R"({{"event":"{}","step":{},"{}":2}})", drawn.back().first, drawn.size(),
                                  drawn.back().second));
    }
  const Json curves = document_of(lines)["curves"];
  for (const auto& [events, column] : drawn)
    EXPECT_EQ(std::ranges::count(curves.at(events).at(column), Json(2)), 1) << events << " " << column;
}

/// Two points for each of 2,000 neighbourhoods of five steps, and the ends of the curve.
TEST(ReportDataTest, ALongCurveKeepsItsPeaksAndEnds) {
  std::vector<std::string> lines = {testing::start_line()};
  for (int step = 1; step <= 10'000; ++step) {
    const double of_five[] = {1, 2, 0.5, 1, 1.5};
    lines.push_back(testing::step_line(1, step, step == 4242 ? 99 : of_five[(step - 1) % 5]));
  }
  const Json run = document_of(lines);
  const Json& steps = run["curves"]["step"];
  EXPECT_EQ(run["steps_logged"], 10'000);
  EXPECT_EQ(run["steps_drawn"], 4002);
  EXPECT_EQ(steps["step"].size(), 4002U);
  EXPECT_EQ(steps["step"][0], 1);
  EXPECT_EQ(steps["step"][1], 2);
  EXPECT_EQ(steps["step"][4001], 10'000);
  EXPECT_EQ(steps["loss"][4001], 1.5);
  EXPECT_EQ(std::ranges::count(steps["loss"], Json(99)), 1);
  EXPECT_EQ(std::ranges::count(steps["loss"], Json(0.5)), 2000);
}

TEST(ReportDataTest, TheDocumentHasAllThatARunLeft) {
  const testing::RunFolders folders;
  const std::string end = R"({"event":"end","step":4,"seconds":12.5,"test_loss":0.25,"test_accuracy":0.625,)"
                          R"("ema_test_loss":0.5,"weights_sha256":"ab","published_hash":true})";
  const std::string run =
      folders.run("a", {testing::start_line(), testing::step_line(1, 1, 2.5),
                        R"({"event":"resume","step":1})", testing::epoch_line(1, 2, 0.5, 0.75),
                        R"({"event":"evaluation","epoch":2,"step":3,"test_loss":0.375,"test_accuracy":0.5})",
                        R"({"event":"loss","step":3})", testing::epoch_line(2, 4, 0.25, 0.625), end});
  folders.write("a/log/verdict.txt", "rank 1 is lost\n");
  folders.write("a/trail.bin", "");
  folders.write("a/checkpoints/step-00000004/x", "");
  folders.write("a/checkpoints/step-00000003/x", "");
  Json report = collect_report(Env::posix(), {run}, {.models = false});
  EXPECT_EQ(report.at("format"), 1);
  Json& one = report.at("runs").at(0);
  EXPECT_EQ(one.at("directory"), run);
  EXPECT_TRUE(one.at("job").get<std::string>().starts_with("model: net\n"));
  for (const char* key : {"directory", "job"}) one.erase(key);
  Json expected = Json::parse(R"({"name": "a", "state": "finished", "steps": 4, "accuracy": 0.625,
      "test_loss": 0.25, "best": {"epoch": 1, "step": 2, "accuracy": 0.75, "of": "test"}, "seconds": 12.5,
      "from_step": 0, "samples_per_second": 40000, "sha256": "ab", "published": true, "trail": "kept", "start": null,
      "end": null, "steps_logged": 1,
      "curves": {"step": {"step": [1], "loss": [2.5], "learning_rate": [0.01],
                          "samples_per_second": [755902.5358167882]},
                 "epoch": {"step": [2, 3, 4], "test_loss": [0.5, 0.375, 0.25], "epoch": [1, 2, 2],
                           "train_seconds": [1.5, null, 1.5], "train_samples": [60000, null, 60000],
                           "samples_per_second": [40000, null, 40000], "learning_rate": [0.01, null, 0.01],
                           "test_samples": [10000, null, 10000], "train_loss": [0.5, null, 0.25],
                           "ema_test_loss": [null, null, 0.5], "test_accuracy": [0.75, 0.5, 0.625]}},
      "ranks": [], "verdicts": ["rank 1 is lost\n"], "events": [{"event": "resume", "step": 1}],
      "checkpoints": [{"step": 4, "accuracy": 0.625}, {"step": 3, "accuracy": null}], "log": [],
      "why_no_job": "", "notes": [], "steps_drawn": 1})");
  expected["start"] = Json::parse(testing::start_line());
  expected["end"] = Json::parse(end);
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(one.at(key), value) << key;
  EXPECT_EQ(one.size(), expected.size());
  const std::string other = folders.run("b", {testing::start_line()}, "0.05");
  report = collect_report(Env::posix(), {run, other}, {.models = false});
  EXPECT_EQ(report.at("differing_keys"),
            Json::parse(R"([{"key": "train.optimizer.lr", "values": ["0.01", "0.05"]}])"));
  EXPECT_EQ(report["runs"][1]["trail"], "none");
  EXPECT_TRUE(report["runs"][1]["best"].is_null());
}

TEST(ReportDataTest, EventsBeyondTwoHundredAreCounted) {
  std::vector<std::string> lines = {testing::start_line()};
  for (int i = 0; i < 203; ++i) lines.push_back(fmt::format(R"({{"event":"resume","step":{}}})", i));
  const Json run = document_of(lines);
  EXPECT_EQ(run["events"].size(), 200U);
  EXPECT_EQ(run["events"][199]["step"], 199);
  EXPECT_EQ(std::ranges::count(run["notes"], Json("3 more events")), 1);
}

TEST(ReportDataTest, TheNewestHundredLinesOfALogAreShown) {
  const testing::RunFolders folders;
  const std::string run = folders.run("a", {testing::start_line()});
  const auto log_of = [&](const std::string& text) {
    folders.write("a/log/rank-0.log", text);
    return collect_report(Env::posix(), {run}, {.models = false}).at("runs").at(0).at("log");
  };
  std::string text;
  for (int i = 0; i < 103; ++i) text += fmt::format("line {}\n\nepoch  1/3\n[1,   100] loss: 2.1\n", i);
  const Json log = log_of(text);
  EXPECT_EQ(log.size(), 100U);
  EXPECT_EQ(log[0], "line 3");
  EXPECT_EQ(log[99], "line 102");
  EXPECT_EQ(log_of("one\n").size(), 1U);

  text.clear();  // 66 lines of 4,000 bytes: 65 and a part of one are in the last 256 KiB
  for (int i = 0; i < 66; ++i) text += fmt::format("line {:02} {}\n", i, std::string(3991, '.'));
  const Json long_log = log_of(text);
  EXPECT_EQ(long_log.size(), 65U);
  EXPECT_EQ(long_log[0].get<std::string>().substr(0, 8), "line 01 ");
  EXPECT_EQ(long_log[64].get<std::string>().substr(0, 8), "line 65 ");
  text = text.substr(4000 * 66 - (256 << 10));  // all of it is read, to the byte
  EXPECT_EQ(log_of(text).size(), 66U);
}

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
  EXPECT_EQ(json["model"]["layers"][0]["from"], Json::array());
  EXPECT_EQ(json["model"]["layers"][1]["name"], "fc");
  EXPECT_EQ(json["model"]["layers"][1]["parameters"], 10);
  EXPECT_EQ(json["model"]["layers"][1]["from"], Json::array({0}));
  EXPECT_EQ(json["filters"]["what"], "fc.weight: 2 of 2, white is zero, red above it, blue below");
  ASSERT_EQ(json["filters"]["pictures"].size(), 2U);
  const std::vector<std::vector<std::uint8_t>> pixels = {
      {217, 255, 255, 255, 72, 255, 255, 255, 15, 255, 255, 255},
      {255, 37, 255, 255, 255, 99, 255, 255, 255, 235, 255, 255}};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string uri = json["filters"]["pictures"][i], head = "data:image/png;base64,";
    const auto png = write_png({.name = "", .width = 2, .height = 2, .channels = 3, .pixels = pixels[i]});
    EXPECT_TRUE(uri.starts_with(head)) << uri;
    EXPECT_EQ((uri.size() - head.size()) % 4, 0U);
    EXPECT_TRUE(std::ranges::equal(decoded(uri.substr(head.size())), png)) << i;
  }
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
  std::filesystem::remove_all(checkpoint);
  EXPECT_EQ(note_of().size(), 1U);
  state.facts.model["width"] = "1";
  state.facts.parameters[0].shape = {2, 2};
  state.weights = {1, 0, 0, 0, 0, 0};
  save_checkpoint(Env::posix(), run, state);
  Json narrow = {{"notes", Json::array()}};
  add_model(narrow, run, options);
  EXPECT_EQ(narrow["model"]["parameters"], 6);
  EXPECT_FALSE(narrow.contains("filters")) << "too few pixels to see anything";
}

TEST(ReportModelTest, OfManyFiltersSixtyFourAreShown) {
  const testing::RunFolders folders;
  CheckpointState state = small_model();
  state.facts.model["yaml"] =
      "layers:\n  - linear: {name: in, out: 65}\n  - linear: {name: fc, out: classes}\n";
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
}

TEST(ReportModelTest, ClassesOfOtherDataAreCalledSo) {
  const testing::RunFolders folders;
  const auto write_idx = [&](const std::string& name, const std::string& sizes, const std::string& values) {
    std::string bytes = {0, 0, 8, static_cast<char>(sizes.size())};
    for (const char size : sizes) bytes += std::string(3, '\0') + size;
    folders.write("other/" + name, bytes + values);
  };
  for (const std::string half : {"train", "t10k"}) {
    write_idx(half + "-images-idx3-ubyte", "\2\2\2", "pictures");
    write_idx(half + "-labels-idx1-ubyte", "\2", {0, 1});
  }
  folders.write("other/classes.txt", "cat\ndog\n");
  const std::string run = folders.run("a", {testing::start_line()});
  save_checkpoint(Env::posix(), run, small_model());
  Json json = {{"notes", Json::array()}};
  add_model(json, run, {.data = folders.path("other")});
  EXPECT_EQ(json["notes"], Json::array());
  EXPECT_EQ(json["classes"]["samples"], 2);
  test::expect_words(
      json["classes"]["note"].get<std::string>(),
      {"classes and mistakes are of " + folders.path("other") + ", not what it was trained on: ",
       "(1 then, 2 now)"});
}

}  // namespace
}  // namespace lockstep
