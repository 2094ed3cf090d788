// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The promise of the project: the number of ranks, threads and the backend leave no trace in the result.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace lockstep::testing {
namespace {

struct TrainedRun {
  std::string last_line;
  std::vector<nlohmann::json> metrics;
};

/// Trains the small job in a run directory of its own.
TrainedRun train(const TemporaryDirectory& directory, const std::string& label, int ranks,
                 const std::string& overrides) {
  const auto run_dir = directory.path("run-" + label);
  const auto arguments = "train " + write_small_job(directory) + " run.dir=" + run_dir + " " + overrides;
  const Outcome outcome = ranks == 0 ? lockstep(arguments) : lockstep_on_ranks(ranks, arguments);
  EXPECT_EQ(outcome.exit_code, 0) << label << "\n" << outcome.everything();
  EXPECT_EQ(outcome.last_line().substr(0, 15), "weights sha256 ") << label << "\n" << outcome.everything();
  return {outcome.last_line(), comparable_metrics(run_dir)};
}

void expect_same(const TrainedRun& run, const TrainedRun& reference, const std::string& label) {
  EXPECT_EQ(run.last_line, reference.last_line) << label;
  EXPECT_EQ(run.metrics, reference.metrics) << label;
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

TEST(WorldSizeTest, ThreadsAndTheThreadBackendMakeNoDifference) {
  const TemporaryDirectory directory;
  const TrainedRun alone = train(directory, "alone", 0, "");
  expect_same(train(directory, "threads2", 1, "parallel.threads=2"), alone, "2 threads");
  expect_same(train(directory, "threads3np2", 2, "parallel.threads=3"), alone, "2 ranks x 3 threads");
  expect_same(train(directory, "thread5", 0, "parallel.backend=thread parallel.ranks=5"), alone,
              "5 ranks as threads");
}

TEST(WorldSizeTest, BucketsMakeNoDifference) {
  const TemporaryDirectory directory;
  const TrainedRun automatic = train(directory, "auto", 2, "");
  expect_same(train(directory, "small", 2, "parallel.bucket_bytes=1000"), automatic, "a bucket a layer");
  expect_same(train(directory, "large", 3, "parallel.bucket_bytes=100000000"), automatic, "one bucket");
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
}  // namespace lockstep::testing
