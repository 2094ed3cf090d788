// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The document of a run of a few lines has the numbers of a calculation by hand.
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
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

/// Two epochs of two ranks, over the end of a month. A second start took the last 10,000 samples of the later one.
/// The epoch between them, of three ranks, has no time and no speed: that start took none of its steps.
TEST(ReportDataTest, EpochsAddUpToTheRun) {
  const Json run = document_of(
      {R"({"event":"start","time":"2026-02-28T23:59:59.500Z","world":2})",
       R"({"event":"epoch","time":"2026-03-01T00:00:01.250Z","epoch":1,"step":5,"train_samples":60000,)"
       R"("train_seconds":1.5,"samples_per_second":40000,"rank_busy_seconds":[1,2],"rank_exposed_seconds":[0.25,0.5]})",
       R"({"event":"epoch","epoch":2,"step":10,"train_samples":60000,"train_seconds":1e-7,"samples_per_second":0,)"
       R"("test_accuracy":0.5,"validation_accuracy":0.25,"rank_busy_seconds":[1,1,1],"rank_exposed_seconds":[0,0,8]})",
       R"({"event":"epoch","time":"2026-03-01T01:02:03.500Z","epoch":3,"step":15,"train_samples":60000,)"
       R"("train_seconds":0.5,"samples_per_second":20000,"validation_accuracy":0.125,"rank_busy_seconds":[0.5,4],"rank_exposed_seconds":[0.25,1]})"});
  EXPECT_EQ(run["samples_per_second"], 35000);
  EXPECT_EQ(run["ranks"], Json::parse(R"([{"busy_seconds": 2.5, "exposed_seconds": 0.5},
                                          {"busy_seconds": 7.0, "exposed_seconds": 1.5},
                                          {"busy_seconds": 1.0, "exposed_seconds": 8.0}])"));
  EXPECT_EQ(run["best"], Json::parse(R"({"epoch": 2, "step": 10, "accuracy": 0.25, "of": "validation"})"));
  const Json& epochs = run["curves"]["epoch"];
  EXPECT_EQ(epochs["step"], Json::parse("[5, 10, 15]"));
  EXPECT_EQ(epochs["seconds"], Json::parse("[1.75, null, 3724]"));
  EXPECT_EQ(epochs["test_accuracy"], Json::parse("[null, 0.5, null]"));
  EXPECT_FALSE(epochs.contains("swa_test_loss")) << "nothing is known of it";
}

TEST(ReportDataTest, WholeNumbersAreCountsBelowALimit) {
  const Json run = document_of({testing::start_line(), R"({"event":"step","loss":999999999999999})",
                                R"({"event":"step","step":2,"loss":1500000000000000})"});
  const Json& losses = run.at("curves").at("step").at("loss");
  EXPECT_TRUE(losses.at(0).is_number_integer());
  EXPECT_TRUE(losses.at(1).is_number_float());
  EXPECT_EQ(run.at("curves").at("step").at("step"), Json::parse("[0, 2]")) << "a line that says no step";
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

/// Two points for each of 2,000 neighbourhoods of five steps, and the ends of the curve. Nothing is below any number.
TEST(ReportDataTest, ALongCurveKeepsItsPeaksAndEnds) {
  std::vector<std::string> lines = {testing::start_line()};
  for (int step = 1; step <= 10'000; ++step) {
    const double of_five[] = {1, 2, 0.5, 1, 1.5};
    lines.push_back(step == 5003 ? R"({"event":"step","step":5003,"loss":null})"
                                 : testing::step_line(1, step, step == 4242 ? 99 : of_five[(step - 1) % 5]));
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
  EXPECT_EQ(std::ranges::count(steps["loss"], Json(0.5)), 1999);
  EXPECT_EQ(std::ranges::count(steps["loss"], Json()), 1);
  lines.resize(1);
  for (int step = 1; step <= 8000; ++step) lines.push_back(testing::step_line(1, step, 1));
  EXPECT_EQ(document_of(lines)["steps_drawn"], 4000) << "each point once";
  lines.resize(1);
  for (int step = 1; step <= 8000; ++step)
    lines.push_back(testing::step_line(1, step, step % 4 / 2 == 0 ? 1 : 5));
  const Json pairs = document_of(lines)["curves"]["step"]["step"];
  EXPECT_EQ(Json(pairs.begin(), pairs.begin() + 5), Json::parse("[1, 3, 5, 7, 9]"))
      << "the first low, the last high";
}

TEST(ReportDataTest, OfManyRunsACurveHasFewerPointsButAHundred) {
  const testing::RunFolders folders;
  std::vector<std::string> lines = {testing::start_line()};
  for (int step = 1; step <= 10'000; ++step) lines.push_back(testing::step_line(1, step, step));
  std::vector<std::string> runs = {folders.run("long", lines)};
  folders.write("short/lock", "");
  for (const auto& [count, points] : {std::pair(20, 2000), {500, 100}}) {
    runs.resize(static_cast<std::size_t>(count), folders.path("short"));
    EXPECT_EQ(collect_report(Env::posix(), runs, {.models = false})["runs"][0]["steps_drawn"], points);
  }
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
  for (const char* name : {"a/checkpoints/step-00000003/x", "a/checkpoints/step-00000001/x"})
    folders.write(name, "");
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
      "checkpoints": [{"step": 4, "accuracy": 0.625}, {"step": 3, "accuracy": 0.5}, {"step": 1, "accuracy": null}],
      "log": [],
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
  EXPECT_TRUE(report["runs"][1]["samples_per_second"].is_null());
  EXPECT_TRUE(report["runs"][1]["best"].is_null());
}

/// A switch went down: the headline and the advice name 300 hosts each.
TEST(ReportDataTest, ALongVerdictKeepsItsHeadlineAndItsAdvice) {
  const testing::RunFolders folders;
  const std::string run = folders.run("a", {testing::start_line()});
  const auto shown = [&](const std::string& text) {
    folders.write("a/log/verdict.txt", text);
    return collect_report(Env::posix(), {run}, {.models = false})["runs"][0]["verdicts"][0]
        .get<std::string>();
  };
  std::string hosts;
  for (int host = 0; host < 300; ++host) hosts += fmt::format("{}knöten{}", host == 0 ? "" : ", ", host);
  const std::string end = " is up; run the same command again\n",
                    text =
                        shown("verdict: " + hosts + " cannot be reached\n  try: look whether " + hosts + end);
  EXPECT_TRUE(text.starts_with("verdict: knöten0, knöten1, ")) << text;
  EXPECT_TRUE(text.ends_with(", knöten299" + end)) << text;
  EXPECT_EQ(test::count_of("...", text), 1) << text;
  EXPECT_EQ(text.find('\\'), text.npos) << "no half of a character";
  EXPECT_EQ(shown(std::string(4096, 'x')), std::string(4096, 'x'));
  EXPECT_EQ(shown(std::string(4097, 'x')), std::string(2046, 'x') + "..." + std::string(2047, 'x'));
}

TEST(ReportDataTest, EventsBeyondTwoHundredAreCounted) {
  std::vector<std::string> lines = {testing::start_line()};
  for (int i = 0; i < 203; ++i) lines.push_back(fmt::format(R"({{"event":"resume","step":{}}})", i));
  const Json run = document_of(lines);
  EXPECT_EQ(run["events"].size(), 200U);
  EXPECT_EQ(run["events"][199]["step"], 199);
  EXPECT_EQ(run["notes"], Json::array({"ended with an error, which it has printed", "3 more events"}));
}

TEST(ReportDataTest, SixtyFourRanksAreTold) {
  std::string ones = "[1";
  for (int rank = 1; rank < 65; ++rank) ones += ",1";
  const Json run =
      document_of({testing::start_line(), R"({"event":"epoch","step":1,"rank_busy_seconds":)" + ones +
                                              R"(],"rank_exposed_seconds":)" + ones + "]}"});
  EXPECT_EQ(run["ranks"].size(), 64U);
}

TEST(ReportDataTest, TheNewestHundredLinesOfALogAreShown) {
  const testing::RunFolders folders;
  const std::string run = folders.run("a", {testing::start_line()});
  const auto log_of = [&](const std::string& text) {
    folders.write("a/log/rank-0.log", text);
    return collect_report(Env::posix(), {run}, {.models = false}).at("runs").at(0).at("log");
  };
  std::string text;
  for (int i = 0; i < 103; ++i)
    text += fmt::format("line {}\n\n[21:18:13.327] epoch  1/3\n[21:18:13.327] [1,   100] loss: 2.1\n", i);
  const Json log = log_of(text);
  EXPECT_EQ(log.size(), 100U);
  EXPECT_EQ(log[0], "line 3");
  EXPECT_EQ(log[99], "line 102");
  EXPECT_EQ(log_of("one\n").size(), 1U);
  const Json words =
      Json::array({"[21:18:13.327] initial weights: a (epoch 3, step 30): 2 tensors by name",
                   "[21:18:13.327] best: accuracy 98.83 % after epoch 9, checkpoint a@epoch:9"});
  EXPECT_EQ(log_of(words[0].get<std::string>() + "\n" + words[1].get<std::string>() + "\n"), words);

  text.clear();  // 66 lines of 4,000 bytes: 65 and a part of one are in the last 256 KiB
  for (int i = 0; i < 66; ++i) text += fmt::format("line {:02} {}\n", i, std::string(3991, '.'));
  const Json long_log = log_of(text);
  EXPECT_EQ(long_log.size(), 65U);
  EXPECT_EQ(long_log[0].get<std::string>().substr(0, 8), "line 01 ");
  EXPECT_EQ(long_log[64].get<std::string>().substr(0, 8), "line 65 ");
  text = text.substr(4000 * 66 - (256 << 10));  // all of it is read, to the byte
  EXPECT_EQ(log_of(text).size(), 66U);
}

}  // namespace
}  // namespace lockstep
