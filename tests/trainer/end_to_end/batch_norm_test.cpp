// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Networks with batch normalisation and with newer layers through the whole program. What checkpoints hold,
/// what is exported, and what is refused. ways_test.cpp has ranks, devices, stages and stops.
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

/// Five steps an epoch, the last one with three samples: one grain, so that most ranks have none.
std::string write_normalised_job(const TemporaryDirectory& directory) {
  write_text(
      directory.path("residual.yaml"),
      "layers:\n  - avg_pool: 4\n  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - batch_norm: {name: bn}\n"
      "  - relu: {name: a}\n  - conv2d: {out: 6, kernel: 1, stride: 2}\n"
      "  - batch_norm: {name: short, momentum: 0.3}\n  - route: a\n"
      "  - conv2d: {out: 6, kernel: 3, stride: 2, padding: 1}\n  - batch_norm: {affine: false}\n"
      "  - add: short\n  - relu\n  - global_avg_pool\n  - batch_norm\n  - linear: classes\n");
  auto path = directory.path("normalised.yaml");
  write_text(path,
             "model: ./residual.yaml\n"
             "data: {set: synthetic, train_samples: 259, test_samples: 50, global_batch: 64}\n"
             "train: {epochs: 2, seed: 7, optimizer: {kind: adam, lr: 0.01}, schedule: {kind: one_cycle}}\n"
             "parallel: {device: cpu, grain: 16}\n"
             "run: {checkpoint_every_steps: 0, log_every_steps: 1}\n");
  return path;
}

TEST(BatchNormProgramTest, CheckpointHoldsRunningStatisticsAndIsUsed) {
  const TemporaryDirectory directory;
  const TrainedRun run = train_job(write_normalised_job(directory), directory.path("run"), 0);
  const Outcome inspected = lockstep("inspect " + run.directory);
  expect_says(
      inspected, 0,
      {"bn.running_mean ", "bn.running_var ", "short.running_var ", "exp_avg.bn.weight ", run.last_line});
  EXPECT_EQ(inspected.out.find("exp_avg.bn.running"), std::string::npos) << inspected.everything();
  expect_words(read_text(run.directory + "/checkpoints/step-00000010/manifest.json"), {"\"version\": 3"});
  EXPECT_EQ(succeed("eval " + run.directory).last_line(), run.last_line);
  succeed("verify " + run.directory);
  succeed("diff " + run.directory + " " + run.directory);
  succeed("export " + run.directory + " --npz " + directory.path("w.npz"));
  expect_words(read_text(directory.path("w.npz")), {"bn.running_mean"});
  succeed("predict " + run.directory + " " + test::source_path("docs/digit.png"));
}

TEST(BatchNormProgramTest, BatchOfOneSampleIsRefusedBeforeTheRunBegins) {
  const TemporaryDirectory directory;
  expect_says(lockstep("train " + write_normalised_job(directory) +
                       " data.train_samples=257 run.dir=" + directory.path("run")),
              2,
              {"normalised.yaml:2:",
               "data.global_batch: 64 leaves a batch of 1 of the 257 training samples, and layer "
               "bn4 (batch_norm) needs 2 to tell how they differ; choose another global batch"});
}

TEST(BatchNormProgramTest, StrategiesWithoutAWholeBatchRefuseIt) {
  const TemporaryDirectory directory;
  for (const std::string strategy : {"hogwild", "pipeline"}) {
    expect_says(lockstep("train " + write_normalised_job(directory) + " parallel.strategy=" + strategy +
                         (strategy == "hogwild" ? " parallel.determinism=off" : "") +
                         " run.dir=" + directory.path("run")),
                2,
                {"parallel.strategy: layer bn (batch_norm) looks at the whole global batch, of "
                 "which " +
                 strategy + " computes a part at a time; use parallel.strategy=data"});
  }
}

/// Gates, concatenations, norms within a sample and newer activations.
TEST(ModernLayersTest, ExportedWeightsComeBackToTheBit) {
  const TemporaryDirectory directory;
  const std::string folder = test::source_path("tests/arithmetic/"),
                    changes = " model=" + folder + "modern.yaml parallel.device=cpu ";
  const TrainedRun run = train_job(folder + "job.yaml" + changes, directory.path("run"), 0);
  const std::string onnx = directory.path("modern.onnx"), copy = directory.path("copy");
  succeed("export " + run.directory + " --onnx " + onnx);
  succeed("import " + onnx + " " + folder + "job.yaml " + copy + changes);
  EXPECT_EQ(lockstep("hash " + copy).last_line(), run.last_line);
  for (const std::string device : {"cpu", "emulated"})
    succeed("eval " + run.directory + " --device " + device);
}

}  // namespace
}  // namespace lockstep::testing
