// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The promise of the project: the number of ranks leaves no trace in the result. ways_test.cpp has every key.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::world_size_test {
namespace {

/// Trains the small job in a run directory of its own.
TrainedRun train(const TemporaryDirectory& directory, const std::string& label, int ranks,
                 const std::string& overrides) {
  return train_job(write_small_job(directory) + " " + overrides, directory.path("run-" + label), ranks);
}

/// The last batch is uneven. Buckets, threads and stages: ways_test.cpp.
TEST(WorldSizeTest, ProcessesLeaveNoTrace) {
  const TemporaryDirectory directory;
  const std::string job = "parallel.grain=37 data.global_batch=300 ";
  const TrainedRun alone = train(directory, "np1", 1, job);
  for (const auto& event : alone.metrics) {
    if (event["event"] != "epoch") continue;
    EXPECT_EQ(event["train_samples"], 1100);
    EXPECT_EQ(event["test_samples"], 333);
  }
  for (const int ranks : {3, 7}) {
    const auto label = "np" + std::to_string(ranks);
    expect_same(train(directory, label, ranks, job), alone, label);
  }
}

/// Also where 2^-40 would have been far too coarse, or far too fine: the units of the exact sums follow.
TEST(WorldSizeTest, LossesAreThoseOfFp32WithoutDeterminism) {
  const TemporaryDirectory directory;
  write_text(directory.path("tiny.yaml"),
             "init: {normal: 1e-14}\nlayers:\n  - flatten\n  - linear: 16\n  - relu\n  - linear: classes\n");
  write_text(
      directory.path("huge.yaml"),
      "init: {normal: 1000}\nlayers:\n  - flatten\n  - linear: 16\n  - relu\n  - linear: 16\n  - relu\n"
      "  - linear: classes\n");
  const std::pair<std::string, std::string> jobs[] = {
      {"net", ""},
      {"tiny", "model=" + directory.path("tiny.yaml") + " train.optimizer.lr=0.5 "},
      {"huge", "model=" + directory.path("huge.yaml") + " data.std=1e-4 train.optimizer.lr=1e-12 "}};
  for (const auto& [name, job] : jobs) {
    SCOPED_TRACE(name);
    const TrainedRun exact = train(directory, name, 1, job);
    for (const int ranks : {1, 3}) {
      const TrainedRun fp32 =
          train(directory, name + std::to_string(ranks), ranks, job + "parallel.determinism=off");
      ASSERT_EQ(fp32.metrics.size(), exact.metrics.size());
      for (std::size_t line = 0; line < exact.metrics.size(); ++line) {
        if (exact.metrics[line]["event"] != "step") continue;
        const auto loss = fp32.metrics[line]["loss"].get<double>();
        EXPECT_NEAR(exact.metrics[line]["loss"].get<double>() / loss, 1, 1e-3) << exact.metrics[line];
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::testing::world_size_test
