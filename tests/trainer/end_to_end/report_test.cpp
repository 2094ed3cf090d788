// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The page of `lockstep report` says what the files of the run say.
#include "common/machine.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;

/// The document in a page.
Json data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

std::vector<Json> events_of(const std::vector<Json>& metrics, const std::string& name) {
  std::vector<Json> events;
  std::ranges::copy_if(metrics, std::back_inserter(events),
                       [&](const Json& one) { return one["event"] == name; });
  return events;
}

void expect_curve_of(const Json& curve, const std::vector<Json>& events) {
  double last = 0;
  for (const Json& seconds : curve["seconds"]) EXPECT_GE(seconds.get<double>(), std::exchange(last, seconds));
  EXPECT_LT(last, 600);
  for (const auto& [column, values] : curve.items()) {
    if (column == "seconds") continue;  // since the run's first line
    ASSERT_EQ(values.size(), events.size()) << column;
    for (std::size_t i = 0; i < events.size(); ++i)
      EXPECT_EQ(values[i], events[i][column]) << column << " " << i;
  }
}

class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override { succeed("train " + write_small_job(directory_) + " run.dir='" + run_ + "'"); }
  std::string page_of(const std::string& arguments, const std::string& file) {
    succeed("report " + arguments);
    return read_text(file);
  }

  TemporaryDirectory directory_;
  std::string run_ = directory_.path("run");
};

TEST_F(ReportTest, EveryNumberIsThatOfTheRunsFiles) {
  const std::string page = page_of(run_, run_ + "/report.html");
  const Json run = data_of(page)["runs"][0];
  const auto metrics = read_metrics(run_);
  expect_curve_of(run["curves"]["step"], events_of(metrics, "step"));
  expect_curve_of(run["curves"]["epoch"], events_of(metrics, "epoch"));
  EXPECT_GE(run["curves"]["step"].size(), 4U);
  EXPECT_GE(run["curves"]["epoch"].size(), 8U);
  EXPECT_EQ(run["start"], events_of(metrics, "start").front());
  const auto command = run["start"]["command"].get<std::string>(),
             host = run["start"]["host"].get<std::string>();
  EXPECT_EQ(host, host_name());
  expect_words(command, {" train " + directory_.path("job.yaml") + " run.dir=" + run_});
  expect_words(page.substr(0, page.find("</noscript>")),
               {"<bdi>" + host + "</bdi>", "<bdi>" + command + "</bdi>"});
  EXPECT_EQ(run["end"], metrics.back());
  EXPECT_EQ(run["accuracy"], metrics.back()["test_accuracy"]);
  EXPECT_EQ(run["sha256"], metrics.back()["weights_sha256"]);
  EXPECT_EQ(run["state"], "finished");
  EXPECT_EQ(run["job"], read_text(run_ + "/job.yaml"));
  const Json eval = answer_of("eval " + run_ + " --classes");
  EXPECT_EQ(run["classes"]["confusion"], eval["confusion"]);
  EXPECT_EQ(run["classes"]["classes"], eval["classes"]);
  EXPECT_EQ(run["classes"]["correct"], eval["correct"]);
  EXPECT_EQ(run["model"]["parameters"], events_of(metrics, "start").front()["parameters"]);
  EXPECT_EQ(run["filters"]["pictures"].size(), 10U);
}

TEST_F(ReportTest, TheTestAtTheEndIsAPointOfItsCurve) {
  const std::string run = directory_.path("validated");
  succeed("train " + directory_.path("job.yaml") +
          " data.validation=32 run.log_every_steps=auto run.dir=" + run);
  const Json curves = data_of(page_of(run, run + "/report.html"))["runs"][0]["curves"];
  const auto metrics = read_metrics(run);
  EXPECT_EQ(curves["step"]["step"].size(), metrics.back()["step"]);  // auto: each of the first steps
  EXPECT_EQ(curves["epoch"]["step"].size(), events_of(metrics, "epoch").size());
  EXPECT_EQ(curves["epoch"]["test_accuracy"].back(), metrics.back()["test_accuracy"]);
  EXPECT_EQ(curves["epoch"]["test_accuracy"].front(), nullptr);
  const std::string cut = directory_.path("cut");
  succeed("train " + directory_.path("job.yaml") + " train.max_steps=1 run.dir=" + cut);
  const Json short_curves = data_of(page_of(cut, cut + "/report.html"))["runs"][0]["curves"];
  EXPECT_EQ(short_curves["epoch"]["step"], Json({1}));
  EXPECT_EQ(short_curves["epoch"]["test_accuracy"], Json({read_metrics(cut).back()["test_accuracy"]}));
}

TEST_F(ReportTest, AFinishedRunHasItsPage) {
  const std::string written = read_text(run_ + "/report.html");
  Json then = data_of(written), now = data_of(page_of(run_, run_ + "/report.html"));
  then.erase("made");
  now.erase("made");
  EXPECT_EQ(then, now);
  const std::string silent = directory_.path("silent");
  succeed("train " + directory_.path("job.yaml") + " run.report=off run.dir=" + silent);
  EXPECT_FALSE(std::filesystem::exists(silent + "/report.html"));
}

/// The page is the last thing that a run writes, once its end is on disk.
TEST_F(ReportTest, ARunThatWasKilledBeforeItsPageGetsItAtTheNextStart) {
  const std::string again = "train " + write_small_job(directory_);
  std::filesystem::remove(run_ + "/report.html");
  const Outcome named = lockstep(again + " run.dir='" + run_ + "'");
  expect_says(named, 0, {"its missing page (report.html) is written"});
  EXPECT_TRUE(named.last_line().starts_with("weights sha256 ")) << named.out;
  EXPECT_TRUE(std::filesystem::exists(run_ + "/report.html")) << named.everything();
  expect_says(lockstep(again + " run.dir='" + run_ + "'"), 0, {"nothing was trained or written"});
  // A directory that the program chooses does not begin another run.
  const std::string place = directory_.path("place");
  std::filesystem::create_directory(place);
  const auto choose = [&] {
    return run_shell("cd '" + place + "' && \"$LOCKSTEP_PROGRAM\" " + again + " run.dir=auto");
  };
  expect_says(choose(), 0);
  std::filesystem::remove(place + "/runs/job/report.html");
  expect_says(choose(), 0, {"already finished: runs/job "});
  EXPECT_TRUE(std::filesystem::exists(place + "/runs/job/report.html"));
  EXPECT_FALSE(std::filesystem::exists(place + "/runs/job-2"));
}

TEST_F(ReportTest, APageThatCannotBeWrittenFailsNoRun) {
  const std::string run = directory_.path("blocked");
  succeed("train " + directory_.path("job.yaml") + " train.epochs=1 run.dir=" + run);
  std::filesystem::remove(run + "/report.html");
  std::filesystem::create_directories(run + "/report.html/full");
  const Outcome outcome = succeed("train " + directory_.path("job.yaml") + " run.dir=" + run);
  expect_words(outcome.err, {"warning: no report.html was written: "});
  EXPECT_EQ(outcome.last_line(), lockstep("hash " + run).out.substr(0, outcome.last_line().size()))
      << outcome.everything();
}

TEST_F(ReportTest, APageOfAnEarlierEndIsNotLeftInPlaceOfALaterOnes) {
  const std::string run = directory_.path("prolonged");
  const std::string train = "train " + directory_.path("job.yaml") + " run.dir=" + run;
  succeed(train + " train.epochs=1");
  ASSERT_TRUE(std::filesystem::exists(run + "/report.html"));
  std::filesystem::create_directories(run + "/report.html.tmp/full");  // as on a full disk
  expect_words(succeed(train).err, {"warning: no report.html was written: "});
  EXPECT_FALSE(std::filesystem::exists(run + "/report.html"));
  std::filesystem::remove_all(run + "/report.html.tmp");
  expect_says(lockstep(train), 0, {"its missing page (report.html) is written"});
  EXPECT_EQ(data_of(read_text(run + "/report.html"))["runs"][0]["sha256"],
            read_metrics(run).back()["weights_sha256"]);
}

TEST_F(ReportTest, FormatsGoToStandardOutputAndFollowEndsWithTheRun) {
  EXPECT_EQ(Json::parse(lockstep("report " + run_ + " --format json").out)["format"], 1);
  const Outcome followed = lockstep("report " + run_ + " --follow");
  EXPECT_EQ(followed.out, lockstep("report " + run_ + " --format terminal").out);
  EXPECT_EQ(lockstep("report " + run_ + " --format pdf").exit_code, 2);
}

TEST_F(ReportTest, ItAsksTheNetworkForNothing) {
  const std::string page = page_of(run_, run_ + "/report.html");
  for (const char* loader :
       {"http://", "https://", "<link rel=\"stylesheet", " src=\"", "@import", "fetch(", "innerHTML"}) {
    // The namespace of SVG is a name, not an address.
    const int names = std::string(loader) == "http://" ? count_of("http://www.w3.org/2000/svg", page) : 0;
    EXPECT_EQ(count_of(loader, page), names) << loader;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST_F(ReportTest, SeveralRunsAreOnOnePageAndNoFileIsReplacedUnasked) {
  const std::string second = directory_.path("second"), file = directory_.path("both.html");
  std::filesystem::copy(run_, second, std::filesystem::copy_options::recursive);
  std::string job = read_text(second + "/job.yaml");
  job.replace(job.find("seed: "), 6, "seed: 1");
  std::ofstream(second + "/job.yaml") << job;
  const Json report = data_of(page_of(run_ + " " + second + " -o " + file, file));
  EXPECT_EQ(report["runs"].size(), 2U);
  const std::string seed = read_metrics(run_).front()["seed"].dump();
  EXPECT_EQ(report["differing_keys"], Json::array({{{"key", "train.seed"}, {"values", {seed, "1" + seed}}}}));
  EXPECT_EQ(report["runs"][1]["name"], "second");
  expect_says(lockstep("report " + run_ + " " + second + " -o " + file), 2);
  expect_says(lockstep("report " + run_ + " -o " + file), 2);
  EXPECT_TRUE(succeed("report " + run_ + " -o " + file + " --force")
                  .out.ends_with(" bytes, 1 run; open it in a browser\n"));
  for (const int runs : {4, 5}) {
    std::string command = "report --format json";
    for (int i = 0; i < runs; ++i) command += " " + run_;
    EXPECT_EQ(Json::parse(lockstep(command).out)["runs"][0].contains("classes"), runs == 4);
  }
}

TEST_F(ReportTest, WhatIsMissingIsANoteAndWhatIsNoRunIsAnError) {
  std::filesystem::remove_all(run_ + "/checkpoints");
  std::filesystem::create_directory(run_ + "/checkpoints");
  std::filesystem::create_directory(run_ + "/checkpoints/step-00000006");
  const Json run = data_of(page_of(run_, run_ + "/report.html"))["runs"][0];
  EXPECT_FALSE(run.contains("classes"));
  EXPECT_NE(run["notes"].dump().find("holds no good checkpoint"), std::string::npos) << run["notes"];
  EXPECT_EQ(lockstep("report " + directory_.path("nothing")).exit_code, 66);
}

TEST_F(ReportTest, ClassesOfAnEvaluationAreTheSameOnAnyNumberOfRanks) {
  const std::string eval = "eval " + run_ + " --classes --json";
  const Outcome alone = succeed(eval);
  EXPECT_EQ(lockstep_on_ranks(3, eval).out, alone.out);
  EXPECT_EQ(lockstep(eval + " --threads 2").out, alone.out);
  const Json json = Json::parse(alone.out), end = read_metrics(run_).back();
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["accuracy"], end["test_accuracy"]);
  EXPECT_EQ(json["loss"], end["test_loss"]);
  EXPECT_EQ(json["weights_sha256"], end["weights_sha256"]);
  const Outcome plain = succeed("eval " + run_);
  EXPECT_EQ(succeed("eval " + run_ + " --classes").last_line(), plain.last_line());
  EXPECT_EQ(plain.out.find("classes:"), std::string::npos) << plain.out;
}

}  // namespace
}  // namespace lockstep::testing
