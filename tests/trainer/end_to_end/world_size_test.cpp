// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The promise of the project: the number of ranks leaves no trace in the result. ways_test.cpp has every key.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace lockstep::testing::world_size_test {
namespace {

/// Trains the small job in a run directory of its own.
TrainedRun train(const TemporaryDirectory& directory, const std::string& label, int ranks,
                 const std::string& overrides) {
  return train_job(write_small_job(directory) + " " + overrides, directory.path("run-" + label), ranks);
}

TEST(WorldSizeTest, AnyNumberOfRanksEndsInTheSameWeightsAndMetrics) {
  const TemporaryDirectory directory;
  const TrainedRun alone = train(directory, "np1", 1, "");
  ASSERT_GE(alone.metrics.size(), 6U);  // start, 3 steps and 1 epoch, twice, end
  for (const int ranks : {2, 3, 4, 7}) {
    const auto label = "np" + std::to_string(ranks);
    expect_same(train(directory, label, ranks, ""), alone, label);
  }
}

TEST(WorldSizeTest, AnOddGrainAndAnUnevenLastBatchMakeNoDifference) {
  const TemporaryDirectory directory;
  const std::string odd = "parallel.grain=37 data.global_batch=300";
  const TrainedRun alone = train(directory, "np1", 1, odd);
  for (const int ranks : {2, 3, 7}) {
    const auto label = "np" + std::to_string(ranks);
    expect_same(train(directory, label, ranks, odd), alone, label);
  }
}

TEST(WorldSizeTest, BranchesAndCurvesMakeNoDifference) {
  const TemporaryDirectory directory;
  const std::string model = "model=" + write_branched_model(directory) + " data.global_batch=300 ";
  const TrainedRun alone = train(directory, "alone", 0, model);
  expect_same(train(directory, "np2", 2, model), alone, "2 ranks");
  expect_same(train(directory, "np3", 3, model + "parallel.threads=2"), alone, "3 ranks x 2 threads");
}

TEST(WorldSizeTest, BucketsMakeNoDifference) {
  const TemporaryDirectory directory;
  const TrainedRun automatic = train(directory, "auto", 2, "");
  expect_same(train(directory, "small", 2, "parallel.bucket_bytes=1000"), automatic, "a bucket a layer");
  expect_same(train(directory, "large", 3, "parallel.bucket_bytes=100000000"), automatic, "one bucket");
}

/// Where 2^-40 would have been far too coarse, or far too fine: the units of the exact sums follow.
TEST(WorldSizeTest, GradientsOfAnySizeTrainAsInFp32OnAnyNumberOfRanks) {
  const TemporaryDirectory directory;
  write_text(directory.path("tiny.yaml"),
             "init: {normal: 1e-14}\nlayers:\n  - flatten\n  - linear: 16\n  - relu\n  - linear: classes\n");
  write_text(
      directory.path("huge.yaml"),
      "init: {normal: 1000}\nlayers:\n  - flatten\n  - linear: 16\n  - relu\n  - linear: 16\n  - relu\n"
      "  - linear: classes\n");
  const std::string jobs[] = {
      "model=" + directory.path("tiny.yaml") + " train.optimizer.lr=0.5",
      "model=" + directory.path("huge.yaml") + " data.std=1e-4 train.optimizer.lr=1e-12"};
  for (std::size_t i = 0; i < std::size(jobs); ++i) {
    SCOPED_TRACE(jobs[i]);
    const auto label = [&](const std::string& name) { return name + std::to_string(i); };
    const TrainedRun alone = train(directory, label("np1-"), 0, jobs[i]);
    for (const int ranks : {3, 7}) {
      const std::string overrides =
          jobs[i] + " parallel.backend=thread parallel.ranks=" + std::to_string(ranks);
      expect_same(train(directory, label("ranks" + std::to_string(ranks) + "-"), 0, overrides), alone,
                  overrides);
    }
    train(directory, label("parts-"), 0, jobs[i] + " train.max_steps=2");
    expect_same(train(directory, label("parts-"), 2, jobs[i]), alone, "resumed after 2 steps");
    const TrainedRun fp32 = train(directory, label("off-"), 0, jobs[i] + " parallel.determinism=off");
    ASSERT_EQ(fp32.metrics.size(), alone.metrics.size());
    for (std::size_t line = 0; line < alone.metrics.size(); ++line) {
      if (alone.metrics[line]["event"] != "step") continue;
      const auto loss = fp32.metrics[line]["loss"].get<double>();
      EXPECT_NEAR(alone.metrics[line]["loss"].get<double>() / loss, 1, 1e-3) << alone.metrics[line];
    }
  }
}

TEST(WorldSizeTest, WithoutDeterminismTheLossCurvesAgree) {
  const TemporaryDirectory directory;
  const TrainedRun exact = train(directory, "world", 1, "");
  for (const int ranks : {1, 3}) {
    const TrainedRun off = train(directory, "off" + std::to_string(ranks), ranks, "parallel.determinism=off");
    ASSERT_EQ(off.metrics.size(), exact.metrics.size());
    for (std::size_t i = 0; i < off.metrics.size(); ++i) {
      if (off.metrics[i]["event"] != "step") continue;
      EXPECT_NEAR(off.metrics[i]["loss"].get<double>(), exact.metrics[i]["loss"].get<double>(), 1e-3)
          << off.metrics[i];
    }
  }
}

TEST(WorldSizeTest, EverySampleIsCountedExactlyOnce) {
  const TemporaryDirectory directory;
  for (const int ranks : {1, 3, 7}) {
    const TrainedRun run = train(directory, "np" + std::to_string(ranks), ranks, "data.global_batch=700");
    for (const auto& event : run.metrics) {
      if (event["event"] != "epoch") continue;
      EXPECT_EQ(event["train_samples"], 1100);
      EXPECT_EQ(event["test_samples"], 333);
    }
  }
}

}  // namespace
}  // namespace lockstep::testing::world_size_test
