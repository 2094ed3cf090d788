// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pipelines of shipped models, of processes, and of stages that users wrote down; what is refused of them.
/// ways_test.cpp has every key in pipelines.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

std::string on_threads(int ranks) {
  return " parallel.backend=thread parallel.ranks=" + std::to_string(ranks);
}

std::string stages(const std::string& how) {
  return " parallel.strategy=pipeline 'parallel.stages=" + how + "'";
}

class PipelineTest : public ::testing::Test {
 protected:
  TrainedRun train(const std::string& label, const std::string& overrides, int ranks = 0) const {
    return train_job(write_small_job(directory_) + " " + overrides, directory_.path(label), ranks);
  }

  TemporaryDirectory directory_;
};

/// Several pipelines of several stages, and two stages with a rank.
TEST_F(PipelineTest, ShippedModelsEndInTheWeightsAndMetricsOfOneRank) {
  for (const std::string model : {"net", "lenet"}) {
    const std::string job = "train.epochs=1 model=" + model;
    const TrainedRun alone = train("alone-" + model, job);
    for (const std::string& how : {stages("3") + on_threads(6), stages("2") + on_threads(1)})
      expect_same(train(model + how.substr(how.size() - 1), job + how), alone, model + how);
  }
}

TEST_F(PipelineTest, ProcessesMakeNoDifference) {
  const std::string odd = "train.epochs=1 parallel.grain=37 data.global_batch=300 train.optimizer.kind=adam";
  const TrainedRun alone = train("alone", odd);
  for (const int ranks : {2, 4}) {
    const std::string label = std::to_string(ranks) + " processes";
    expect_same(train("np" + std::to_string(ranks), odd + stages("2"), ranks), alone, label);
  }
}

TEST_F(PipelineTest, MetricsEndWithWhatThePipelineTook) {
  expect_says(
      lockstep("train " + write_small_job(directory_) + " train.epochs=1" + stages("2") + on_threads(2)), 0,
      {"pipeline: bubble "});
  const auto events = read_metrics(directory_.path("run"));
  EXPECT_EQ(events.front()["pipelines"], "1");
  const auto pipeline = events.back().at("pipeline");
  EXPECT_GT(pipeline.at("micro_batches").get<double>(), 0);
  EXPECT_GE(pipeline.at("bubble").get<double>(), 0);
  EXPECT_LT(pipeline.at("bubble").get<double>(), 1);
  EXPECT_GT(pipeline.at("bytes_sent").get<double>(), 0);
  EXPECT_EQ(pipeline.at("stage_0_in_flight"), 2);
  EXPECT_EQ(pipeline.at("stage_1_in_flight"), 1);
  EXPECT_GT(pipeline.at("stage_1_backward_seconds").get<double>(), 0);
}

TEST_F(PipelineTest, AStepThatCannotBeTakenIsNamedAsOnOneRank) {
  const std::string job =
      "train " + write_small_job(directory_) + " train.optimizer.lr=1e6 run.resume=never run.dir=";
  const Outcome alone = lockstep(job + directory_.path("alone"));
  const Outcome staged = lockstep(job + directory_.path("staged") + stages("3") + on_threads(3));
  expect_says(alone, 70);
  expect_says(staged, 70);
  EXPECT_EQ(staged.err, alone.err);
}

/// One that has none still hears of the norm that clips; its trail is that of one rank, too.
TEST_F(PipelineTest, StagesWithoutParametersTakePartOnBothDevices) {
  const std::string job =
      "model=mlp train.epochs=1 train.clip_norm=0.5 data.test_samples=2 data.train_samples=24 "
      "data.global_batch=16 parallel.grain=8 ";
  const TrainedRun alone = train("alone", job);
  for (const std::string device : {"cpu", "emulated"}) {
    const std::string how = stages("[[flatten1], [fc1], [relu1], [fc2], [relu2], [fc3]]") + on_threads(3);
    expect_same(train(device, job + "parallel.device=" + device + how), alone, device);
    EXPECT_EQ(read_text(directory_.path(device + "/trail.bin")),
              read_text(directory_.path("alone/trail.bin")));
  }
}

/// The last of four stages stands still within a long series of steps. Between two series no stage is waited for.
TEST_F(PipelineTest, AStageThatIsLostIsNamedByTheWatchdogOrWithoutItByTheOthers) {
  const std::pair<std::string, std::vector<std::string>> ways[] = {
      {"true", {"verdict: rank 3 on ", "it is stopped"}},
      {"false", {"no sign of life from stage 3 (", "on rank 3:"}}};
  for (const auto& [watchdog, words] : ways) {
    const TemporaryDirectory directory;
    const auto outcome = run_and_strike(
        mpirun_command(4, "train " + write_small_job(directory) +
                              " data.train_samples=12800 data.global_batch=128 run.log_every_steps=30 " +
                              "run.keep.best=false run.checkpoint_every_steps=0 "
                              "parallel.timeout_seconds=3 parallel.watchdog=" +
                              watchdog + stages("4")),
        directory.path("run"), "kill -STOP " + process_of_rank(3));
    expect_says(outcome, 71, words);
  }
}

struct Refused {
  const char* title;
  std::string how;
  std::vector<std::string> mentions;
};

TEST_F(PipelineTest, WhatCannotBeCutIsRefusedWithItsPlace) {
  const std::string branched = " model=" + write_branched_model(directory_);
  const std::string small = write_small_job(directory_);
  const std::string in_file = directory_.path("staged.yaml");
  write_text(in_file,
             "model: mlp\ndata: {set: synthetic, train_samples: 64}\nparallel:\n  strategy: pipeline\n"
             "  stages: [[flatten1, fc1], [fc2, relu2, fc3]]\n");
  const std::vector<Refused> cases = {
      {"does not cover",
       in_file + on_threads(2),
       {"staged.yaml:5:11: parallel.stages", "relu1 is missing before fc2"}},
      {"end is missing",
       small + " model=mlp" + stages("[[flatten1, fc1], [relu1, fc2]]") + on_threads(2),
       {"parallel.stages", "relu2 is missing at the end"}},
      {"unknown layer",
       small + " model=mlp" + stages("[[flatten1, fcl], [relu1, fc2, relu2, fc3]]") + on_threads(2),
       {"no layer 'fcl'", "did you mean 'fc1'"}},
      {"twice",
       small + " model=mlp" + stages("[[flatten1, fc1], [fc1, relu1, fc2, relu2, fc3]]") + on_threads(2),
       {"fc1 is listed twice"}},
      {"more stages than layers",
       small + " model=mlp" + stages("7") + on_threads(7),
       {"only 6 layers", "ask for 6"}},
      {"ranks no multiple",
       small + stages("2") + on_threads(3),
       {"2 stages do not come out on 3 ranks", "start 1, 2, 4"}},
      {"placement of other length",
       small + stages("2") + " parallel.placement=[0,1,0]" + on_threads(2),
       {"parallel.placement", "3 ranks for 2 stages"}},
      {"a rank without a stage",
       small + stages("2") + " parallel.placement=[0,2]" + on_threads(3),
       {"rank 1 has no stage"}},
      {"a cut through a connection",
       small + branched +
           stages("[[conv1, tanh1, a, drop1], [conv2, gelu1, add1, relu2, add2, sigmoid1, pool1, gelu2, "
                  "pool2, fc1]]") +
           on_threads(2),
       {"begins between", "put both into one stage, such as [["}},
      {"too many for connections", small + branched + stages("9") + on_threads(9), {"residual connections"}},
  };
  for (const Refused& refused : cases) {
    const Outcome outcome = lockstep("train " + refused.how + " run.dir=" + directory_.path("refused"));
    const Outcome emulated =
        lockstep("train " + refused.how + " parallel.device=emulated run.dir=" + directory_.path("refused"));
    SCOPED_TRACE(refused.title);
    EXPECT_EQ(emulated.err, outcome.err);
    for (const Outcome& each : {outcome, emulated}) expect_says(each, 2, refused.mentions);
  }
}

}  // namespace
}  // namespace lockstep::testing
