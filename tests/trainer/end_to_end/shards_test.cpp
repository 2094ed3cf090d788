// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs on images that stay on disk: those of a run in memory, on any ranks, after any stop; and never on others. Runs on
/// tables, from CSV to predictions.
#include "data/sets/shards.hpp"

#include "common/env.hpp"
#include "data/dataset.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJob =
    "model: linear\n"
    "data: {set: shards, root: digits, global_batch: 128, validation: 0.1, shuffle_window: 100,\n"
    "       augment: [{shift: {horizontal: 0.1, vertical: 0.1}}, {mixup: {}}]}\n"
    "train: {epochs: 2, evaluate_every_steps: 2, optimizer: {lr: 0.05}}\n"
    "parallel: {device: cpu, grain: 16}\n"
    "run: {checkpoint_every_steps: 2, log_every_steps: 1}\n";

/// The job and its set, beside each other.
class ShardedRunTest : public ::testing::Test {
 protected:
  ShardedRunTest() {
    write_in_shards(Env::posix(), {.set = "synthetic", .train_samples = 600, .test_samples = 90},
                    path("digits"), {.sizes = {.block_bytes = 4096, .shard_bytes = 65536}});
    write_text(path("job.yaml"), kJob);
  }
  Outcome train(const std::string& run, const std::string& overrides,
                const std::string& launcher = "") const {
    return run_shell(launcher + " " + std::getenv("LOCKSTEP_PROGRAM") + " train " + path("job.yaml") +
                     " run.report=false run.dir=" + path(run) + " " + overrides);
  }
  /// Of a run that must end well.
  std::vector<nlohmann::json> metrics_of(const std::string& run, const std::string& overrides,
                                         const std::string& launcher = "") const {
    const Outcome outcome = train(run, overrides, launcher);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
    return comparable_metrics(path(run));
  }
  std::string path(const std::string& name) const { return directory_.path(name); }

  TemporaryDirectory directory_;
};

TEST_F(ShardedRunTest, DiskAndMemoryRanksAndStopsGiveTheSameRun) {
  const auto in_memory = metrics_of("memory", "data.in_memory=true");
  EXPECT_EQ(metrics_of("disk", ""), in_memory);
  EXPECT_EQ(metrics_of("threads", "parallel.backend=thread parallel.ranks=3"), in_memory);
  EXPECT_EQ(metrics_of("gpu", "parallel.device=emulated"), in_memory);
  EXPECT_EQ(metrics_of("mpi", "", "mpirun -np 2"), in_memory);
  Outcome outcome;
  for (int starts = 0; starts < 50; ++starts) {
    outcome = train("steps", "run.max_seconds=0.001");
    if (outcome.exit_code != 75) break;
  }
  EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_EQ(comparable_metrics(path("steps")), in_memory);
  EXPECT_NE(metrics_of("all", "data.shuffle_window=0").back(), in_memory.back());
}

TEST_F(ShardedRunTest, AFlippedBitEndsTheRunOfAllRanks) {
  const std::string file = path("digits/train-00004.shard");
  std::string bytes = read_text(file);
  bytes[12345] ^= 2;
  write_text(file, bytes);
  for (const char* launcher : {"", "mpirun -np 2"}) {
    const Outcome outcome = train("run", "", launcher);
    EXPECT_EQ(outcome.exit_code, 65) << outcome.everything();
    EXPECT_NE(outcome.err.find("digits/train-00004.shard: bytes 12288 to 16383"), outcome.err.npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("SHA-256 differs"), outcome.err.npos);
  }
}

TEST_F(ShardedRunTest, AnotherSetInTheSamePlaceIsRefused) {
  EXPECT_EQ(train("run", "run.max_seconds=0.001").exit_code, 75);
  write_in_shards(Env::posix(), {.set = "synthetic", .seed = 7, .train_samples = 600, .test_samples = 90},
                  path("digits"), {.replace = true});
  const Outcome outcome = train("run", "");
  EXPECT_EQ(outcome.exit_code, 65) << outcome.everything();
  EXPECT_NE(outcome.err.find("shards train samples (sha256"), outcome.err.npos) << outcome.err;
}

std::string program() {
  return std::getenv("LOCKSTEP_PROGRAM");
}

TEST_F(ShardedRunTest, ATableGivesOneRunAndAnswersItsRows) {
  std::string csv = "id,far,near,kind\n";
  for (int i = 0; i < 90; ++i)
    csv += fmt::format("no {},{},{}e-3,{}\n", i, 1000 + 300 * (i % 3), i, i % 3 == 2 ? "upper" : "lower");
  write_text(path("rows.csv"), csv);
  const std::string convert = program() + " convert " + path("rows.csv") + " " + path("rows") + " --drop id";
  const Outcome converted = run_shell(convert + " --label kind --test 10%");
  EXPECT_EQ(converted.exit_code, 0) << converted.everything();
  EXPECT_NE(
      converted.out.find("2 classes (lower, upper), 81 samples to train on, 9 to test with, 2 numbers each"),
      std::string::npos)
      << converted.out;
  write_text(path("job.yaml"),
             "model: linear\n"
             "data: {set: table, root: rows, global_batch: 32, validation: 0.1}\n"
             "train: {epochs: 10, optimizer: {lr: 0.5}}\n"
             "parallel: {device: cpu, grain: 8}\n");
  const auto metrics = metrics_of("run", "");
  EXPECT_EQ(metrics_of("gpu", "parallel.device=emulated"), metrics);
  EXPECT_EQ(metrics_of("mpi", "", "mpirun -np 2"), metrics);
  write_text(path("asked.csv"), "1600,0.01\n1000,?\n1000,0.02\n");
  const Outcome predicted =
      run_shell(program() + " predict " + path("run") + " " + path("asked.csv") + " --csv");
  EXPECT_EQ(predicted.exit_code, 65);
  EXPECT_NE(predicted.err.find("asked.csv: line 2: column 2: '?' is missing"), std::string::npos)
      << predicted.err;
  EXPECT_NE(predicted.out.find("asked.csv: line 1\",\"upper\","), std::string::npos) << predicted.out;
  EXPECT_NE(predicted.out.find("asked.csv: line 3\",\"lower\","), std::string::npos) << predicted.out;
  EXPECT_EQ(run_shell(program() + " predict " + path("run") + " " + path("rows.csv")).exit_code, 65);
  EXPECT_EQ(run_shell(program() + " eval " + path("run") + " --data " + path("digits")).exit_code, 65);
}

}  // namespace
}  // namespace lockstep::testing
