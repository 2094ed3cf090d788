// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs that earlier versions left half done, as they left them (tests/golden/old_*): each is inspected,
/// evaluated, predicted with and brought to its end. They began with `lockstep train job.yaml run.dir=.`; the
/// max_steps in their jobs cut them short.
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace lockstep::testing::old_runs_test {
namespace {

std::string source(const std::string& path) {
  return test::source_path(path);
}

class OldRun {
 public:
  explicit OldRun(const std::string& name) : run_(directory_.path("run")) {
    std::filesystem::copy(source("tests/golden/" + name), run_, std::filesystem::copy_options::recursive);
  }

  Outcome ask(const std::string& command, const std::string& more = "") const {
    Outcome outcome = lockstep(command + " " + run_ + " " + more);
    EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.everything();
    return outcome;
  }
  /// The last line of a training without the limit that had ended it.
  std::string go_on() const {
    const Outcome outcome =
        run_shell("cd " + run_ + " && $LOCKSTEP_PROGRAM train job.yaml train.max_steps=0 run.dir=.");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
    EXPECT_NE(outcome.out.find("going on from step"), std::string::npos) << outcome.everything();
    return outcome.last_line();
  }
  const std::string& path() const { return run_; }

 private:
  TemporaryDirectory directory_;
  std::string run_;
};

/// 7 of 10 steps of a network with batch_norm, by adam in one cycle.
TEST(OldRunsTest, BatchNormAndAdamInTheMiddleOfTheirCycle) {
  const OldRun run("old_norm_run");
  EXPECT_NE(run.ask("inspect").out.find("bn2.running_var"), std::string::npos);
  const Outcome evaluated = run.ask("eval");
  EXPECT_NE(evaluated.out.find("loss 2.0858, accuracy 30.00 % (15 of 50)"), std::string::npos)
      << evaluated.out;
  EXPECT_EQ(evaluated.last_line(),
            "weights sha256 b53364205a0eaf6579ed905c047c25f09bd0f0f7eb544383868f8669ee8e804f");
  run.ask("predict", source("docs/digit.png"));
  run.go_on();
  const auto end = read_metrics(run.path()).back();
  EXPECT_EQ(end["step"], 10);
  EXPECT_NEAR(end["test_loss"].get<double>(), 2.033399565219879, 1e-4);  // what that version came to
}

/// 5 of 9 steps on a user's own pictures in colour, by rmsprop; the data lie in the run, which has moved.
TEST(OldRunsTest, OwnDataWithNames) {
  const OldRun run("old_data_run");
  const std::string data = "--data " + run.path() + "/data";
  EXPECT_NE(run.ask("inspect").out.find("square_avg"), std::string::npos);
  const Outcome evaluated = run.ask("eval", data);
  EXPECT_NE(evaluated.out.find("loss 0.0279, accuracy 100.00 % (12 of 12)"), std::string::npos)
      << evaluated.out;
  EXPECT_EQ(evaluated.last_line(),
            "weights sha256 b98e231a4bac73dd799a0d133110209e45eb60b3e6f2c782087afbe0c4ab6b64");
  EXPECT_NE(run.ask("predict", "'" + run.path() + "/data/t10k-images-idx4-ubyte[0]'").out.find("green"),
            std::string::npos);
  run.go_on();
  const auto end = read_metrics(run.path()).back();
  EXPECT_EQ(end["step"], 9);
  EXPECT_NEAR(end["test_loss"].get<double>(), 0.005079429121299957, 1e-5);
}

}  // namespace
}  // namespace lockstep::testing::old_runs_test
