// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks that are really killed, stopped or out of step. One verdict names the right one, and no rank is left.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

constexpr const char* kVerdict = "verdict: ";

class WatchdogTest : public ::testing::Test {
 protected:
  std::string job_with(const std::string& more) const {
    return "train " + write_small_job(directory_) +
           " train.epochs=1000 run.checkpoint_every_steps=0 run.dir=" + run_ + " " + more;
  }
  /// Three ranks; the process of rank 1 is $victim of `blow`. None may be left behind, but for a moment.
  Outcome strike_rank_1(const std::string& more, const std::string& blow) const {
    auto outcome =
        run_and_strike(mpirun_command(3, job_with(more)), run_, "victim=" + process_of_rank(1) + "\n" + blow);
    EXPECT_EQ(run_shell("for i in $(seq 100); do left=$(pgrep -f \"^$LOCKSTEP_PROGRAM train .*" + run_ +
                        "\") || break; sleep 0.1; done; printf %s \"$left\"")
                  .out,
              "");
    return outcome;
  }

  const TemporaryDirectory directory_;
  const std::string run_ = directory_.path("run"), verdict_ = run_ + "/log/verdict.txt";
};

void expect_one_verdict_on_rank_1(const Outcome& outcome, const std::string& what) {
  EXPECT_EQ(count_of(kVerdict, outcome.err), 1) << outcome.everything();
  expect_words(outcome.err, {"verdict: rank 1 on ", what, "initiating: rank 1\n"});
}

TEST_F(WatchdogTest, KilledRankIsNamedAndTheVerdictIsWrittenDown) {
  const auto outcome = strike_rank_1("", "kill -KILL $victim");
  EXPECT_EQ(outcome.exit_code, 137) << outcome.everything();  // mpirun's word for a killed rank
  expect_one_verdict_on_rank_1(outcome, "died: its process is gone; last seen in ");
  expect_words(outcome.err, {"it goes on from the last checkpoint, on any number of ranks\n"});
  const std::string written = read_text(verdict_);
  EXPECT_TRUE(written.starts_with("verdict: rank 1 on ")) << written;
  expect_words(written, {"\n  rank"});
}

/// mpirun kills the one that is left soon after: here it is stopped until that rank has told.
TEST_F(WatchdogTest, LastRankTellsOfAllOthersKilledAtOnce) {
  const auto outcome =
      strike_rank_1("", "last=" + process_of_rank(2) + "; first=" + process_of_rank(0) +
                            "\nkill -STOP $run; kill -KILL $first $victim; for i in $(seq 200); do [ -s " +
                            verdict_ + " ] && break; sleep 0.05; done; kill -KILL $last; kill -CONT $run");
  EXPECT_EQ(outcome.exit_code, 137) << outcome.everything();
  EXPECT_LE(count_of(kVerdict, outcome.err), 1) << outcome.everything();
  const std::string written = read_text(verdict_);
  EXPECT_EQ(written.find("verdict: ranks "), 0U) << written << outcome.everything();
}

TEST_F(WatchdogTest, StoppedRankIsNamedAndTheOthersLeaveAfterTheTimeout) {
  const auto outcome = strike_rank_1("parallel.timeout_seconds=5", "kill -STOP $victim");
  expect_says(outcome, 71, {": it is stopped, kill -CONT "});
  expect_one_verdict_on_rank_1(outcome, "has given no sign of life for 5.");
}

/// Stopped by a signal after it is back: a run of so many steps might be over before.
TEST_F(WatchdogTest, RankThatComesBackGoesOnWithTheSameBits) {
  const auto until_said = [](const std::string& words) {
    return "for i in $(seq 300); do grep -q '" + words + "' /dev/stderr && break; sleep 0.1; done; ";
  };
  const auto outcome =
      strike_rank_1("", "kill -STOP $victim; " + until_said("is silent") + "kill -CONT $victim; " +
                            until_said("is back after") + "kill -USR1 $run");
  expect_says(outcome, 75);
  expect_words(outcome.err, {")) is back after "});  // the device is named: "(pid 123, cpu (AVX-512))"
  EXPECT_EQ(count_of(kVerdict, outcome.err), 0) << outcome.err;
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(run_ + "/checkpoints"))
    newest = std::max(newest, entry.path().filename().string());
  const std::string alone = directory_.path("alone"), steps = newest.substr(std::string("step-").size());
  expect_says(lockstep("train " + write_small_job(directory_) + " train.epochs=100000 train.max_steps=" +
                       std::to_string(std::stoll(steps)) + " run.dir=" + alone),
              0);
  EXPECT_EQ(lockstep("hash " + run_).out, lockstep("hash " + alone).out);
  EXPECT_FALSE(std::filesystem::exists(verdict_));
}

TEST_F(WatchdogTest, RankOutOfStepIsNamedBeforeTheTimeout) {
  const auto outcome =
      run_shell("LOCKSTEP_ALLOW_INJECT=1 " +
                mpirun_command(3, job_with("inject.rank=1 inject.step=5 inject.what=desync")));
  expect_says(outcome, 71);
  expect_one_verdict_on_rank_1(outcome, "is out of step");
}

}  // namespace
}  // namespace lockstep::testing
