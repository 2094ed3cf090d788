// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which changes to a job a resume must refuse.
#include "common/error.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

std::vector<std::string> changes(const std::string& override_text, const std::string& base = "model: net") {
  const Job before = parse_job(base, "job.yaml");
  const Job after = parse_job(base, "job.yaml", {override_text});
  return differing_keys(determining_keys(before), determining_keys(after));
}

std::string advice_for(const std::vector<std::string>& overrides) {
  const std::string start = "run the same command again: it goes on from the last checkpoint, on ";
  const std::string text = restart_advice(parse_job("model: net", "job.yaml", overrides), 4);
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

TEST(RestartRuleTest, AdvicePromisesWhatTheJobHolds) {
  const std::string others = "; the weights will be others than without this loss";
  EXPECT_EQ(advice_for({}), "any number of ranks");
  EXPECT_EQ(advice_for({"parallel.determinism=off"}), "any number of ranks" + others);
  EXPECT_EQ(advice_for({"data.per_rank_batch=8"}), "4 ranks as before (data.per_rank_batch)");
  EXPECT_EQ(advice_for({"parallel.strategy=pipeline"}),
            "4 ranks as before, or as many as its stages come out on");
  EXPECT_EQ(advice_for({"parallel.strategy=hogwild", "parallel.determinism=off"}),
            "any number of ranks of one host" + others);
}

TEST(JobHashTest, EqualJobsDoNotDiffer) {
  EXPECT_TRUE(changes("model=net").empty());
}

TEST(JobHashTest, WhatDeterminesTheWeightsIsNamedWithBothValues) {
  EXPECT_EQ(changes("train.seed=1"), std::vector<std::string>{"train.seed (was 1234, now 1)"});
  for (const char* text :
       {"model=lenet", "data.set=random", "data.global_batch=64", "data.mean=0", "data.std=1",
        "data.shuffle=no", "train.optimizer.lr=0.5", "train.optimizer.momentum=0",
        "train.optimizer.weight_decay=1e-4", "train.optimizer.nesterov=yes", "parallel.determinism=off",
        "train.initial_weights=w.safetensors", "train.initial_scale=0.01", "parallel.grain=32"}) {
    EXPECT_FALSE(changes(text).empty()) << text;
  }
}

TEST(JobHashTest, LengthPlaceAndLoggingMayChange) {
  for (const char* text : {"train.epochs=99",
                           "train.max_steps=5",
                           "data.root=/elsewhere",
                           "parallel.device=cpu",
                           "parallel.backend=thread",
                           "parallel.ranks=3",
                           "parallel.threads=2",
                           "parallel.bucket_bytes=4KiB",
                           "parallel.timeout_seconds=9",
                           "parallel.split=chunk",
                           "data.per_rank_batch=7",
                           "run.curve=yes",
                           "run.trail=no",
                           "run.print_shapes=yes",
                           "run.print_loss_every_steps=7",
                           "parallel.check_replicas_every_steps=1",
                           "run.dir=x",
                           "inject={rank: 1, step: 3, what: die}",
                           "run.resume=never",
                           "run.log_every_steps=1",
                           "run.checkpoint_every_steps=1"}) {
    EXPECT_TRUE(changes(text).empty()) << text;
  }
}

TEST(JobHashTest, OptimizerAndScheduleDetermineTheWeights) {
  for (const char* text : {"train.optimizer.kind=adam", "train.optimizer.decay_biases=no",
                           "train.optimizer.lr_scaling.rule=sqrt", "train.schedule.kind=cosine",
                           "train.schedule.warmup_epochs=1", "train.schedule.by=step"}) {
    EXPECT_FALSE(changes(text).empty()) << text;
  }
  EXPECT_FALSE(
      changes("train.optimizer.betas=[0.8, 0.9]", "{model: net, train: {optimizer: {kind: adam}}}").empty());
}

/// A schedule that ends where the run ends would be another one in a longer run.
TEST(JobHashTest, EpochsDetermineTheWeightsWhereAScheduleIsAsLongAsTheRun) {
  const std::string cosine = "{model: net, train: {schedule: {kind: cosine}}}";
  EXPECT_EQ(changes("train.epochs=20", cosine),
            std::vector<std::string>{"train.schedule.total (was 10, now 20)"});
  EXPECT_TRUE(changes("train.schedule.total=10", cosine).empty());
  EXPECT_TRUE(changes("train.max_steps=7", cosine).empty());
  EXPECT_TRUE(
      changes("train.epochs=20", "{model: net, train: {schedule: {kind: cosine, total: 10}}}").empty());
  EXPECT_FALSE(changes("train.epochs=20", "{model: net, train: {schedule: {kind: one_cycle}}}").empty());
  EXPECT_TRUE(
      changes("train.epochs=20", "{model: net, train: {schedule: {kind: exponential, gamma: 0.9}}}").empty());
}

/// The keys that checkpoints had before there were others than sgd.
TEST(ResumeTest, CheckpointFromBeforeThereWereSchedulesGoesOn) {
  auto stored = determining_keys(parse_job("model: net", "job.yaml"));
  std::erase_if(stored, [](const auto& entry) {
    return entry.first.starts_with("train.schedule.") ||
           entry.first.starts_with("train.optimizer.lr_scaling") ||
           entry.first == "train.optimizer.decay_biases";
  });
  EXPECT_NO_THROW(require_same_job(stored, parse_job("model: net", "job.yaml"), "c"));
  EXPECT_THROW(
      require_same_job(stored, parse_job("model: net", "job.yaml", {"train.schedule.kind=cosine"}), "c"),
      ConfigError);
}

TEST(JobHashTest, GrainMayChangeWhenSumsAreNotExact) {
  EXPECT_TRUE(changes("parallel.grain=32", "{model: net, parallel: {determinism: off}}").empty());
}

TEST(JobHashTest, KeyThatOnlyOneSideHasIsADifference) {
  EXPECT_EQ(differing_keys({{"a", "1"}}, {{"b", "2"}}),
            (std::vector<std::string>{"a (was 1, now not given)", "b (was not given, now 2)"}));
}

TEST(ResumeTest, TheSameJobMayGoOn) {
  const Job job = parse_job("model: net", "job.yaml");
  EXPECT_NO_THROW(require_same_job(determining_keys(job), job, "c"));
}

TEST(ResumeTest, EveryDifferingKeyIsNamedWithBothValues) {
  const Job before = parse_job("{model: net, train: {seed: 1}}", "job.yaml");
  const Job now = parse_job("{model: net, train: {seed: 2}, data: {shuffle: no}}", "job.yaml");
  auto stored = determining_keys(before);
  stored["old"] = "x";
  try {
    require_same_job(stored, now, "runs/a/checkpoints/step-00000001");
    FAIL() << "another job was accepted";
  } catch (const ConfigError& error) {
    const std::string why = error.what();
    EXPECT_TRUE(why.starts_with("runs/a/checkpoints/step-00000001: ")) << why;
    for (const char* part :
         {"train.seed (was 1, now 2)", "old (was x, now not given)", "data.shuffle (was true, now false)"})
      EXPECT_NE(why.find(part), std::string::npos) << part << " is missing in: " << why;
    EXPECT_EQ(why.find("model"), std::string::npos) << why;
  }
}

TEST(ResumeTest, AKeyYoungerThanTheCheckpointHadItsDefault) {
  auto stored = determining_keys(parse_job("model: net", "job.yaml"));
  stored.erase("train.optimizer.nesterov");
  EXPECT_NO_THROW(require_same_job(stored, parse_job("model: net", "job.yaml"), "c"));
  EXPECT_THROW(
      require_same_job(stored, parse_job("model: net", "job.yaml", {"train.optimizer.nesterov=yes"}), "c"),
      ConfigError);
}

}  // namespace
}  // namespace lockstep
