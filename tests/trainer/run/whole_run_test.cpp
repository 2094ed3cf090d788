// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whole runs of a few steps in this process: every word that they say, write down and record.
#include "tests/trainer/run/whole_run.hpp"

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/checkpoint/rank_file.hpp"

namespace lockstep {
namespace {

const std::vector<std::string> kTalkative = {"run.print_loss_every_steps=1", "run.curve=true",
                                             "run.print_shapes=true"};

constexpr const char* kFirstLines =
    R"(Lockstep V: linear, 7,850 parameters, on synthetic (144 train, 16 validation, 1,016 test; made in memory)
2 ranks on 1 host, cpu, 1 thread each, backend thread
global batch 96 = 6 grains of 16, 2 steps an epoch; determinism: world; 1 bucket: 7,850 parameters
sgd, learning rate 1e-09, constant
)";
constexpr const char* kFirstStep =
    R"(Let's use 2 ranks! 0: cpu, 1: cpu
    In Model: input size [48, 1, 28, 28] output size [48, 10]  (rank 0, cpu)
    In Model: input size [48, 1, 28, 28] output size [48, 10]  (rank 1, cpu)
Outside: input size [96, 1, 28, 28] output_size [96, 10]
)";
constexpr const char* kLastLines =
    R"(ema: accuracy 8.17 % of 1,016 test samples, checkpoint DIR/run@ema
swa: accuracy 8.17 % of 1,016 test samples, checkpoint DIR/run@swa
best: validation accuracy 12.50 % after step 1, checkpoint DIR/run@step:1
)";
constexpr const char* kHash = "weights sha256 H\n";

TEST_F(WholeRunTest, EveryWordOfATalkativeRunIsThatOfItsNumbers) {
  const Job job = job_of("run", kTwoRanks, kTalkative);
  const std::string told = kFirstLines + std::string(kFirstStep) +
                           R"([1,     1] loss: 2.427
epoch  1/2  step 1  validation loss 2.3875  accuracy 12.50 %  ema 12.50 %
    In Model: input size [16, 1, 28, 28] output size [16, 10]  (rank 0, cpu)
    In Model: input size [32, 1, 28, 28] output size [32, 10]  (rank 1, cpu)
Outside: input size [48, 1, 28, 28] output_size [48, 10]
[1,     2] loss: 2.452
epoch  1/2  train loss 2.4351  validation loss 2.3875  accuracy 12.50 %  ema 12.50 %, swa 12.50 %  T
     0--------------------------------------------------------1  validation accuracy
   1 |       *                                                | 0.1250
memory: at most M resident, for all 2 ranks
Finished Training
no better accuracy than 12.50 % in 1 evaluation: ended by train.patience at step 2 of 4
done: 2 steps in T, accuracy 8.17 % of 1,016 test samples, run directory DIR/run
)" + kLastLines;
  expect_told(job, told + kHash, "run");
  std::string logged = told;
  logged.insert(std::string_view(kFirstLines).size(),
                "expected wait for gradients after the backward pass: N us a step\n");
  EXPECT_EQ(log_of("run"), logged);
  EXPECT_EQ(Json::parse(text_of(path("run/status.json"))),
            Json::parse(R"({"version": 1, "state": "ended", "step": 2, "exclude_hosts": []})"));
  EXPECT_EQ(events_of("run"), Json::parse(R"([
{"event": "start", "version": "T", "world": 2, "hosts": 1, "threads": 1, "device": "cpu",
 "backend": "thread", "strategy": "data", "buckets": "1 bucket: 7,850 parameters", "model": "linear",
 "parameters": 7850, "data": "synthetic", "data_origin": "made in memory", "train_samples": 144,
 "test_samples": 1016, "validation_samples": 16, "global_batch": 96, "grain": 16, "determinism": "world",
 "seed": 1234, "optimizer": "sgd", "schedule": "constant", "learning_rate": 1e-09, "setup_seconds": "T",
 "host": "T", "command": "T", "time": "T"},
{"event": "loss", "epoch": 1, "step": 1, "steps": 1, "mean_loss": 2.427, "learning_rate": 1e-09,
 "time": "T"},
{"event": "step", "epoch": 1, "step": 1, "loss": 2.427, "learning_rate": 1e-09, "train_accuracy": 0.03125,
 "accuracy_steps": 1, "gradient_norm": 3.79, "samples_per_second": "T", "time": "T"},
{"event": "evaluation", "epoch": 1, "step": 1, "validation_loss": 2.388, "validation_accuracy": 0.125,
 "validation_samples": 16, "ema_validation_loss": 2.388, "ema_validation_accuracy": 0.125, "time": "T"},
{"event": "loss", "epoch": 1, "step": 2, "steps": 1, "mean_loss": 2.452, "learning_rate": 1e-09,
 "time": "T"},
{"event": "step", "epoch": 1, "step": 2, "loss": 2.452, "learning_rate": 1e-09, "train_accuracy": 0.08333,
 "accuracy_steps": 1, "gradient_norm": 5.387, "samples_per_second": "T", "time": "T"},
{"event": "epoch", "epoch": 1, "step": 2, "train_loss": 2.435, "train_accuracy": 0.04861,
 "train_samples": 144, "train_seconds": "T", "learning_rate": 1e-09, "validation_loss": 2.388,
 "validation_accuracy": 0.125, "validation_samples": 16, "ema_validation_loss": 2.388,
 "ema_validation_accuracy": 0.125, "swa_validation_loss": 2.388, "swa_validation_accuracy": 0.125,
 "epoch_seconds": "T", "samples_per_second": "T", "step_seconds_p50": "T", "step_seconds_p90": "T", "step_seconds_p99": "T",
 "resident_bytes": "T", "peak_resident_bytes": "T", "exposed_seconds": "T", "rank_skew": "T",
 "slowest_rank": "T", "rank_busy_seconds": "T", "rank_exposed_seconds": "T", "time": "T"},
{"event": "end", "step": 2, "seconds": "T", "validation_loss": 2.388, "validation_accuracy": 0.125,
 "validation_samples": 16, "test_loss": 2.435, "test_accuracy": 0.08169, "test_samples": 1016,
 "ema_validation_loss": 2.388, "ema_validation_accuracy": 0.125, "swa_validation_loss": 2.388,
 "swa_validation_accuracy": 0.125, "ema_test_loss": 2.435, "ema_test_accuracy": 0.08169,
 "swa_test_loss": 2.435, "swa_test_accuracy": 0.08169, "stopped_early": true, "weights_sha256": "T",
 "time": "T"}
])"));
}

TEST_F(WholeRunTest, ARunWithNothingLeftSaysWhyAndGoesOnWhereMoreIsAsked) {
  Job job = job_of("run", kTwoRanks, kTalkative);
  outcome_of(job);
  const std::string already = "already finished: DIR/run holds 2 steps, ",
                    train_on = "; nothing was trained or written; to train on, set ",
                    again = "lockstep train DIR/run/job.yaml ",
                    afresh = "; to start afresh, run.resume=never or another run.dir\n",
                    patience = "train.patience=2 or more (0: never): ";
  expect_told(job, already + "after which its patience (train.patience) was at its end" + train_on +
                       patience + again + "train.patience=2" + afresh + kHash);
  job.train.max_steps = 1;
  expect_told(job, already + "more than the 1 asked for" + train_on +
                       "train.max_steps=3 or more (0: no limit) and " + patience + again +
                       "train.max_steps=3 train.patience=2" + afresh + kHash);
  job.train.max_steps = 0;
  job.train.patience = 2;
  expect_told(job,
              kFirstLines + std::string("going on from step 2 in DIR/run\n") + kFirstStep +
                  R"([2,     1] loss: 2.391
epoch  2/2  step 3  validation loss 2.3875  accuracy 12.50 %  ema 12.50 %, swa 12.50 %
memory: at most M resident, for all 2 ranks
Finished Training
no better accuracy than 12.50 % in 2 evaluations: ended by train.patience at step 3 of 4
done: 3 steps, the last 1 in T, accuracy 8.17 % of 1,016 test samples, run directory DIR/run
)" + kLastLines + kHash,
              "run");
  const Json events = events_of("run");
  ASSERT_EQ(events.size(), 11U) << events.dump(1);
  EXPECT_EQ(events[10]["step"], 3);
  EXPECT_EQ(events[10]["from_step"], 2);
  EXPECT_EQ(events[9], Json::parse(R"({"event": "evaluation", "epoch": 2, "step": 3,
      "validation_loss": 2.388, "validation_accuracy": 0.125, "validation_samples": 16,
      "ema_validation_loss": 2.388, "ema_validation_accuracy": 0.125,
      "swa_validation_loss": 2.388, "swa_validation_accuracy": 0.125, "time": "T"})"));
  EXPECT_EQ(saved("run", 3).facts.patience, (CheckpointPatience{0.125, 2, 0}));
}

TEST_F(WholeRunTest, ARunThatGoesOnFromACheckpointOfAnotherIsToldFromItsStart) {
  outcome_of(job_of("a", kTwoRanks, {"train.patience=0", "train.max_steps=2"}));
  CheckpointState state = saved("a", 2);
  state.facts.arithmetic.version = kSmoothedPairArithmetic;
  save_checkpoint(Env::posix(), path("a"), state);
  ::testing::internal::CaptureStderr();
  const std::string told =
      told_by(job_of("b", kTwoRanks, {"run.resume=" + path("a"), "train.epochs=4", "train.patience=2"}));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  test::expect_words(told, {"\nits steps up to 2 were computed by a version of this program that rounded "
                            "gradients elsewhere: it goes on from there, ",
                            "\nno better accuracy than 12.50 % since step 2 in 2 evaluations: ended by "
                            "train.patience at step 5 of 8\n"});
  EXPECT_EQ(checkpoints_of("b"), (std::vector<std::string>{"step-00000003", "step-00000005"}));
  const Json events = events_of("b");
  EXPECT_EQ(events.front()["event"], "start");
  EXPECT_EQ(events.back()["step"], 5);
}

/// The checkpoint is of the step that this job ends with.
TEST_F(WholeRunTest, ARunThatTakesNoStepAfterTheCheckpointOfAnotherHasItsOwn) {
  const std::string of_a = "run.resume=" + path("a");
  outcome_of(job_of("a", kTwoRanks, {"train.patience=0", "train.max_steps=2"}));
  const Job job = job_of("b", kTwoRanks, {"train.patience=0", "train.max_steps=2", of_a});
  EXPECT_EQ(outcome_of(job).first, 0);
  EXPECT_EQ(saved("b", 2).weights, saved("a", 2).weights);
  test::expect_words(text_of(path("b/job.yaml")), {"\n  resume: auto\n"});
  test::expect_words(told_by(job), {"already finished: DIR/b holds all 2 steps; nothing was trained"});
}

/// Its patience is at its end, too.
TEST_F(WholeRunTest, ARunThatTookAllItsStepsWasNotEndedByItsPatience) {
  const std::string told = told_by(job_of("run", kTwoRanks, {"train.epochs=1"}));
  EXPECT_EQ(told.find("train.patience"), told.npos) << told;
  EXPECT_EQ(saved("run", 2).facts.patience, (CheckpointPatience{0.125, 1, 0}));
  EXPECT_FALSE(events_of("run").back().contains("stopped_early"));
}

TEST_F(WholeRunTest, PatienceIsCountedAnewWhereARunGoesOnWithAnotherTestSet) {
  const std::string yaml =
      "model: linear\ndata: {set: synthetic, train_samples: 32, test_samples: 16, global_batch: 16}\n"
      "train: {epochs: 2, patience: 3, optimizer: {lr: 1.0e-30}}\n"
      "parallel: {device: cpu, grain: 16, threads: 1}\n";
  EXPECT_EQ(outcome_of(job_of("run", yaml)).first, 0);
  const CheckpointFacts before = saved("run", 4).facts;
  EXPECT_EQ(before.patience, (CheckpointPatience{before.test_accuracy.value_or(-1), 1, 0}));
  EXPECT_EQ(outcome_of(job_of("run", yaml, {"train.epochs=3", "data.test_samples=20"})).first, 0);
  const CheckpointFacts after = saved("run", 6).facts;
  EXPECT_EQ(after.patience, (CheckpointPatience{after.test_accuracy.value_or(-1), 0, 4}));
}

TEST_F(WholeRunTest, TheSumsOfBothRanksAreWrittenDownInEachStep) {
  outcome_of(job_of("run", kTwoRanks));
  for (const std::int64_t step : {1, 2}) {
    const auto found = find_ranks(path("run") + "/" + kRankFile, step);
    ASSERT_TRUE(found && found->sums) << step;
    EXPECT_EQ(found->stretch.ranks.size(), 2U);
    EXPECT_NE(found->sums->sums, 0U);
  }
}

/// Weights grow by 10^12 a step and are infinite after the fourth, whose losses are still finite.
TEST_F(WholeRunTest, WeightsThatBecomeInfiniteInTheLastStepAreNotSaved) {
  const Job job =
      job_of("run",
             "model: linear\ndata: {set: synthetic, train_samples: 300, test_samples: 50, global_batch: 64}\n"
             "train: {epochs: 1, max_steps: 4, seed: 7,\n"
             "        optimizer: {lr: 1.0e6, momentum: 0, weight_decay: 1.0e6}}\n"
             "parallel: {device: cpu, grain: 16, threads: 1}\n");
  const auto [code, said] = outcome_of(job);
  EXPECT_EQ(code, 70);
  test::expect_words(said, {"after step 4: ", " of 7840 numbers of fc.weight are NaN or infinite",
                            ". Nothing of this step was saved\n"});
  EXPECT_FALSE(std::filesystem::exists(path("run/checkpoints/step-00000004")));
}

/// One rank: classes in turns, samples left out, weights of another run, a trace and an event file.
TEST_F(WholeRunTest, WhatARunIsMadeOfIsSaidAtItsStart) {
  outcome_of(job_of("a", kTwoRanks));
  std::ofstream(path("out.txt")) << "3\n5\n";
  const std::string yaml =
      "model: linear\ndata: {set: synthetic, train_samples: 1100, test_samples: 100, "
      "per_rank_batch: 64, balance_classes: true, leave_out: " +
      path("out.txt") + "}\ntrain: {epochs: 1, optimizer: {lr: 0.05}, initial_weights: " + path("a") +
      "}\nparallel: {device: cpu, grain: 16, backend: thread, threads: 1}\n";
  const auto job = [&](const std::string& steps) {
    return job_of("b", yaml,
                  {"train.max_steps=" + steps, "run.tensorboard=true", "run.trace=2..3",
                   "run.checkpoint_every_steps=4"});
  };
  const std::string first =
      R"(Lockstep V: linear, 7,850 parameters, on synthetic (1,098 of 1,100 train, 2 left out, 100 test; made in memory)
1 rank on 1 host, cpu, 1 thread each, backend none
global batch 64 = 4 grains of 16, 18 steps an epoch; determinism: world; buckets: none, one rank
global batch 64 = 1 rank x data.per_rank_batch 64: another number of ranks trains other weights
10 classes balanced, of 103 to 121 samples: each is drawn 109 or 110 times an epoch
sgd, learning rate 0.05, constant
)";
  expect_told(
      job("3"),
      first +
          R"(initial weights: DIR/a/checkpoints/step-00000002/model.safetensors (epoch 1, step 2, validation accuracy 12.50 %): 2 tensors by name
trace: steps 2..3 of 1 rank in DIR/b/trace.pftrace (N slices); open it in ui.perfetto.dev
memory: at most M resident
done: 3 steps in T, accuracy 64.00 % of 100 test samples, run directory DIR/b
weights sha256 H
)",
      "b");
  expect_told(job("5"),
              first +
                  R"(going on from step 3 in DIR/b
trace: none, since this start took no step of 2..3
memory: at most M resident
done: 5 steps, the last 2 in T, accuracy 74.00 % of 100 test samples, run directory DIR/b
weights sha256 H
)",
              "b");
  EXPECT_EQ(checkpoints_of("b"),
            (std::vector<std::string>{"step-00000003", "step-00000004", "step-00000005"}));
  EXPECT_EQ(saved("b", 5).facts.replayed, 0) << "one rank";
  EXPECT_FALSE(events_of("b").front().contains("validation_samples"));
  expect_told(job("5"),
              "already finished: DIR/b holds all 5 steps; nothing was trained or written; to train on, set "
              "train.max_steps=6 or more (0: no limit): lockstep train DIR/b/job.yaml train.max_steps=6; to "
              "start afresh, run.resume=never or another run.dir\nweights sha256 H\n");
}

}  // namespace
}  // namespace lockstep
