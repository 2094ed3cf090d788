// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep runs, compare, and RUN@best, as a user meets them, on two small runs.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

/// Trains two runs for all tests of this file: they differ in the learning rate.
class RunsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    const std::string job = write_small_job(*directory_);
    for (const char* run : {"slow", "fast"}) {
      const std::string rate = run == std::string("fast") ? "0.5" : "0.01";
      trained_ = succeed("train " + job + " train.epochs=3 run.keep.last=9 train.optimizer.lr=" + rate +
                         " run.checkpoint_every_steps=1 run.dir=" + path(run));
    }
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string path(const std::string& run) { return directory_->path("runs/" + run); }

  static TemporaryDirectory* directory_;
  static Outcome trained_;  ///< the run "fast"
};

TemporaryDirectory* RunsTest::directory_ = nullptr;
Outcome RunsTest::trained_;

TEST_F(RunsTest, EndOfTrainingNamesTheBestAndItsCheckpointIsThere) {
  const std::size_t at = trained_.out.find("\nbest: accuracy ");
  ASSERT_NE(at, std::string::npos) << trained_.out;
  const std::string line = trained_.out.substr(at + 1, trained_.out.find('\n', at + 1) - at - 1);
  const std::string name = line.substr(line.rfind(' ') + 1);
  const Outcome best = succeed("hash " + path("fast") + "@best"), named = lockstep("hash " + name);
  EXPECT_EQ(best.out, named.out);
  EXPECT_NE(read_text(path("fast") + "/log/rank-0.log").find(line), std::string::npos);
}

TEST_F(RunsTest, CommandsTakeNamesOfCheckpoints) {
  const std::string run = path("slow");
  for (const std::string& command :
       {"eval " + run + "@best", "inspect " + run + "@epoch:2", "verify " + run + "@step:1",
        "hash " + run + "@last", "export " + run + "@epoch:1 --npz " + directory_->path("w.npz")}) {
    succeed(command);
  }
  succeed("diff " + run + "@epoch:3 " + run);
  expect_says(lockstep("diff " + run + "@epoch:1 " + run), 1, {"conv1.weight"});
  EXPECT_EQ(lockstep("hash " + run + "@last").out, lockstep("hash " + run).out);
}

TEST_F(RunsTest, TrainingStartsFromANamedCheckpointAndIsProved) {
  const std::string run = directory_->path("tuned"), start = path("slow") + "@epoch:1";
  succeed("train " + directory_->path("job.yaml") + " train.epochs=1 train.initial_weights=" + start +
          " run.dir=" + run);
  succeed("prove " + run);
}

TEST_F(RunsTest, InspectListsTheCheckpointsOfARun) {
  const Outcome said = lockstep("inspect " + path("slow"));
  expect_says(said, 0, {"@last", "@best", "test accuracy", "weights sha256"});
  EXPECT_TRUE(said.out.starts_with("checkpoints of " + path("slow") + "\ncheckpoint")) << said.out;
}

TEST_F(RunsTest, CommandsSpeakJson) {
  const std::string run = path("slow");
  const auto json = [](const std::string& command, int exit_code = 0) {
    const Outcome outcome = lockstep(command + " --json");
    expect_says(outcome, exit_code);
    auto document = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(document.at("format"), 1) << command;
    return document;
  };
  const auto hashed = json("hash " + path("fast"));
  EXPECT_EQ("weights sha256 " + hashed.at("weights_sha256").get<std::string>(), trained_.last_line());
  EXPECT_EQ(hashed.at("step"), 9);
  EXPECT_EQ(hashed.at("checkpoint"), path("fast") + "/checkpoints/step-00000009");
  EXPECT_TRUE(hashed.at("published_hash").is_null());
  const auto inspected = json("inspect " + run);
  EXPECT_EQ(inspected.at("step"), 9);
  EXPECT_EQ(inspected.at("checkpoints").size(), 9U);
  EXPECT_EQ(inspected.at("checkpoints").at(0).at("test_accuracy"), inspected.at("test_accuracy"));
  EXPECT_EQ(inspected.at("tensors").at(0).at("shape"), (std::vector<int>{10, 1, 5, 5}));
  EXPECT_EQ(json("verify " + run).at("checkpoints").size(), 9U);
  EXPECT_TRUE(json("diff " + run + " " + run).at("same"));
  EXPECT_FALSE(json("diff " + run + " " + path("fast"), 1).at("tensors").empty());
  const auto job = json("validate " + directory_->path("job.yaml") + " train.epochs=7");
  EXPECT_EQ(job.at("job").at("train.epochs"), "7");
  EXPECT_EQ(job.at("parameters"), 21840);
  EXPECT_GT(job.at("host_bytes"), 1000000);
  EXPECT_EQ(job.at("device_bytes"), 0);
  EXPECT_EQ(job.at("train_samples"), 1100);
  EXPECT_EQ(job.at("test_samples"), 333);
  const std::string on_device = "validate " + directory_->path("job.yaml") + " parallel.device=emulated";
  EXPECT_GT(json(on_device).at("device_bytes"), 0);
  expect_says(lockstep(on_device), 0, {"; on its GPU: "});
}

TEST_F(RunsTest, RunsAreListedChosenAndCompared) {
  const Outcome all = lockstep("runs " + directory_->path("runs"));
  expect_says(all, 0, {"finished"});
  EXPECT_LT(all.out.find("fast"), all.out.find("slow"));
  const Outcome one =
      lockstep("runs " + directory_->path("runs") + " --json --where train.optimizer.lr=0.5 --sort accuracy");
  const auto json = nlohmann::json::parse(one.out);
  ASSERT_EQ(json.at("runs").size(), 1U);
  EXPECT_EQ(json.at("runs").at(0).at("run"), path("fast"));
  EXPECT_EQ("weights sha256 " + json.at("runs").at(0).at("weights_sha256").get<std::string>(),
            trained_.last_line());

  const Outcome compared = lockstep("compare " + path("slow") + " " + path("fast"));
  expect_says(compared, 0,
              {"train.optimizer.lr", "they part at step 2, first in ", "test accuracy, %, by epoch: A B"});
  EXPECT_LT(compared.out.find("they part at"), compared.out.find("by epoch: A B")) << compared.out;
  for (const std::string& command : {"compare " + path("slow") + " " + path("none"), "runs " + path("none")})
    expect_says(lockstep(command), 66);
  const auto order = [&](const std::string& options) {
    std::vector<std::string> found;
    const Outcome said = lockstep("runs " + directory_->path("runs") + " --json --sort loss" + options);
    const auto runs = nlohmann::json::parse(said.out).at("runs");
    for (const auto& run : runs) found.push_back(run.at("run"));
    return found;
  };
  const auto best_first = order(""), worst_first = order(" --reverse");
  EXPECT_EQ(best_first, std::vector<std::string>(worst_first.rbegin(), worst_first.rend()));
  EXPECT_NE(best_first, worst_first);
  for (const char* command : {"runs --where nonsense", "runs --sort beauty"})
    expect_says(lockstep(command), 2);
}

}  // namespace
}  // namespace lockstep::testing
