// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank's state goes wrong. No checkpoint has it, and a run goes on from one that is sure, or not at all.
#include "common/machine.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::wrong_state_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNormalised =
    "layers:\n  - linear: 12\n  - batch_norm\n  - relu\n  - linear: classes\n";

/// Three steps an epoch, saved after every second one and at the end.
class WrongStateTest : public ::testing::Test {
 protected:
  std::string run(const std::string& name = "run") const { return directory_.path(name); }
  /// On ranks that are threads.
  Outcome train(int ranks, const std::string& more, const std::string& name = "run") const {
    return lockstep("train " + write_small_job(directory_) + " run.report=false run.dir=" + run(name) +
                    " parallel.backend=thread parallel.ranks=" + std::to_string(ranks) + " " + more);
  }
  static std::string fault(const std::string& what, int step, int rank = 1) {
    return " inject.step=" + std::to_string(step) + " inject.rank=" + std::to_string(rank) +
           " 'inject.what=" + what + "' ";
  }
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(run() + "/checkpoints"))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  TemporaryDirectory directory_;
  const test::SetVariable allows_faults_{"LOCKSTEP_ALLOW_INJECT", "1"};
};

/// Before, exit code 0 and other weights: of the second and third a run took no notice at all.
TEST_F(WrongStateTest, NoCheckpointHoldsWhatOneRankAloneHas) {
  write_text(directory_.path("normalised.yaml"), kNormalised);
  const std::string model = "model=" + directory_.path("normalised.yaml") + " ";
  const std::string right = train(1, model, "whole").last_line();
  for (const auto& [what, said] :
       {std::pair("weights 5:3", "its weights are not those of the others from "),
        std::pair("momentum 9:20", "its values of momentum are not those of "),
        std::pair("statistics 3:12", "its running statistics are not those of ")}) {
    for (const int rank : {0, 2}) {
      fs::remove_all(run());
      const std::string command = model + fault(std::string("flip-bit ") + what, 3, rank);
      expect_says(train(3, command), 72,
                  {"step 3: rank " + std::to_string(rank) + " on " + host_name() + " (cpu", said,
                   "The same command goes on from the checkpoint of step 2\n"});
      EXPECT_EQ(checkpoints(), std::vector<std::string>{"step-00000002"});
      EXPECT_EQ(train(2, model).last_line(), right);
    }
  }
}

/// Without trail there are no rows of each step: the state itself is compared.
TEST_F(WrongStateTest, StatesAreComparedWhereAskedAndAtTheEndWithoutATrail) {
  const std::string right = train(1, "", "whole").last_line(),
                    rare = "run.checkpoint_every_steps=0 run.keep.best=false ";
  for (const int every : {4, 0}) {
    fs::remove_all(run());
    const std::string more = "parallel.check_replicas_every_steps=" + std::to_string(every) + " ";
    const std::string command = rare + more + "run.trail=false " + fault("flip-bit momentum 9:20", 4);
    expect_says(train(3, command), 72,
                {(every == 0 ? "step 6: rank 1 on " : "step 4: rank 1 on ") + host_name(),
                 "Nothing was saved before: the same command begins anew\n"});
    EXPECT_EQ(train(3, command).last_line(), right);
  }
}

TEST_F(WrongStateTest, TwoRanksAreBothNamedAndReplicasOfAPipelineCompareTheirStages) {
  const std::string right = train(1, "", "whole").last_line();
  expect_says(train(2, fault("flip-bit momentum 9:20", 3)), 72,
              {"they differ about the values of momentum of conv1.weight, and each insists"});
  EXPECT_EQ(train(2, fault("flip-bit momentum 9:20", 3)).last_line(), right);
  fs::remove_all(run());
  const std::string pipelines =
      "parallel.strategy=pipeline parallel.stages=2 " + fault("flip-bit momentum 9:20", 3, 5);
  expect_says(train(6, pipelines), 72, {"step 3: rank 5 on " + host_name()});
  EXPECT_EQ(checkpoints(), std::vector<std::string>{"step-00000002"});
  EXPECT_EQ(train(6, pipelines).last_line(), right);
}

/// An infinite number from a rank's memory is told as that, and not as too high a rate.
TEST_F(WrongStateTest, NanOfOneRankIsItsMemory) {
  expect_says(train(3, fault("nan", 3)), 72, {"its weights are not those of the others from "});
}

constexpr const char* kSixEpochs = "train.epochs=6 run.keep.last=1 ";

/// A processor that errs now and then: unseen in step 10, seen in step 12, which is replayed.
class DoubtTest : public WrongStateTest {
 protected:
  Outcome go_on(const std::string& more = "") const { return train(3, kSixEpochs + replays_ + more); }
  void err_twice(const std::string& replays) {
    replays_ = replays;
    expect_says(go_on("train.max_steps=11" + fault("wrong-lane", 10)), 0);
    seen_ = go_on(fault("wrong-lane", 12));
    expect_says(seen_, 72, {"step 12: rank 1 on " + host_name()});
    const auto status = nlohmann::json::parse(read_text(run() + "/status.json"));
    EXPECT_EQ(status,
              (nlohmann::json{
                  {"version", 1}, {"state", "failed"}, {"step", 12}, {"exclude_hosts", {host_name()}}}));
  }

  std::string replays_;
  Outcome seen_;
};

TEST_F(DoubtTest, ARunGoesOnFromACheckpointBeforeTheLastReplayThatPassed) {
  const std::string right = train(1, kSixEpochs, "whole").last_line();
  err_twice("parallel.replay_every_steps=4 ");
  expect_says(seen_, 72,
              {"Checkpoints after step 8 may be affected: the same command goes on from "
               "that of step 8\n"});
  EXPECT_EQ(checkpoints(), (std::vector<std::string>{"step-00000008", "step-00000011"}));
  const auto newest = run() + "/checkpoints/step-00000011";
  const auto verified = lockstep("verify " + run());
  expect_says(verified, 65);
  expect_words(verified.out,
               {"step-00000011: in doubt: whole, but saved after step 8, and at step 12 rank 1 on ",
                "step-00000008: good"});
  for (const Outcome& alone : {lockstep("verify " + newest), lockstep("verify " + newest + "/"),
                               run_shell("cd " + newest + " && $LOCKSTEP_PROGRAM verify .")}) {
    expect_says(alone, 65);
    expect_words(alone.out, {"in doubt"});
  }
  for (const std::string command : {"hash ", "verify "})
    expect_says(lockstep(command + run() + "@step:11"), 65, {"the checkpoint of step 11 is in doubt"});
  expect_words(lockstep("hash " + run()).err, {"newer checkpoints are in doubt and passed over"});
  EXPECT_EQ(lockstep("hash " + run() + "@last").out, lockstep("hash " + run() + "@step:8").out);
  expect_says(lockstep("hash " + run() + "@best"), 66, {"after epoch 2, was not kept"});

  const auto finished = go_on();
  expect_says(finished, 0, {"going on from step 8 in "});
  EXPECT_EQ(finished.last_line(), right);
  EXPECT_FALSE(fs::exists(run() + "/doubt.json"));
  EXPECT_TRUE(fs::exists(run() + "/previous-1/checkpoints/step-00000011"));
  const auto metrics = read_metrics(run());
  EXPECT_EQ(std::ranges::count_if(metrics, [](const auto& line) { return line.value("step", 0) == 10; }), 1);
  succeed("prove " + run());
  succeed("verify " + run());
}

TEST_F(DoubtTest, WhereNoneIsLeftARunRefusesAndSaysWhatToDo) {
  const std::string right = train(1, kSixEpochs, "whole").last_line();
  err_twice("parallel.replay_every_steps=12 ");
  expect_says(seen_, 72,
              {"Checkpoints after step 0 may be affected: no other is left, and the same "
               "command refuses to go on; begin anew with run.resume=never\n"});
  for (const std::string& command : {std::string("train"), "eval " + run(), "hash " + run()}) {
    const auto refused = command == "train" ? go_on() : lockstep(command);
    expect_says(refused, 65,
                {"all its checkpoints are in doubt: they were saved after step 0, and at step 12 rank 1 "});
  }
  fs::copy(run(), run("copy"), fs::copy_options::recursive);
  const auto named =
      train(3, kSixEpochs + ("run.resume=" + run("copy") + "/checkpoints/step-00000011"), "copy");
  expect_says(named, 0, {"going on from step 11 in "});
  EXPECT_NE(named.last_line(), right);
  const auto anew = ended_well(go_on("run.resume=never"));
  EXPECT_EQ(anew.last_line(), right);
  EXPECT_TRUE(fs::exists(run() + "/previous-1/doubt.json"));
}

TEST_F(DoubtTest, ADamagedRecordIsNotTakenForNone) {
  train(1, "");
  write_text(run() + "/doubt.json", "{}");
  expect_says(train(1, "train.epochs=3"), 65, {"doubt.json: is damaged"});
  expect_says(lockstep("verify " + run()), 65, {"doubt.json: is damaged"});
}

}  // namespace
}  // namespace lockstep::testing::wrong_state_test
