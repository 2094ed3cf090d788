// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Gates, concatenations, norms within a sample and the newer activations through the whole program: stopped runs,
/// stages of a pipeline, evaluation, ONNX. tests/arithmetic has ranks, threads, instruction sets and the emulated GPU.
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::testing::modern_layers_test {
namespace {

std::string folder() {
  return test::source_path("tests/arithmetic/");
}

/// What is changed in the job of tests/arithmetic.
std::string changes() {
  return " model=" + folder() + "modern.yaml train.epochs=2 parallel.device=cpu ";
}

std::string job() {
  return folder() + "job.yaml" + changes();
}

TEST(ModernLayersTest, StoppedRunGoesOnToTheSameWeights) {
  const TemporaryDirectory directory;
  const TrainedRun whole = train_job(job(), directory.path("whole"), 0);
  train_job(job() + "train.max_steps=2", directory.path("parts"), 0);
  train_job(job() + "train.max_steps=4 parallel.device=emulated", directory.path("parts"), 0);
  expect_same(train_job(job() + "parallel.threads=2", directory.path("parts"), 2), whole, "parts");
}

TEST(ModernLayersTest, StagesOfAPipelineEndInTheSameWeights) {
  const TemporaryDirectory directory;
  const TrainedRun whole = train_job(job(), directory.path("whole"), 0);
  for (const std::string device : {"cpu", "emulated"}) {
    const std::string stages =
        "parallel.strategy=pipeline parallel.stages=2 parallel.backend=thread parallel.ranks=2 "
        "parallel.device=" +
        device;
    EXPECT_EQ(train_job(job() + stages, directory.path(device), 0).last_line, whole.last_line) << device;
  }
}

TEST(ModernLayersTest, ExportedWeightsComeBackToTheBit) {
  const TemporaryDirectory directory;
  const TrainedRun run = train_job(job(), directory.path("run"), 0);
  const std::string onnx = directory.path("modern.onnx"), copy = directory.path("copy");
  const Outcome exported = lockstep("export " + run.directory + " --onnx " + onnx);
  EXPECT_EQ(exported.exit_code, 0) << exported.everything();
  const Outcome imported = lockstep("import " + onnx + " " + folder() + "job.yaml " + copy + changes());
  EXPECT_EQ(imported.exit_code, 0) << imported.everything();
  EXPECT_EQ(lockstep("hash " + copy).last_line(), run.last_line);
  for (const std::string device : {"cpu", "emulated"})
    EXPECT_EQ(lockstep("eval " + run.directory + " --device " + device).exit_code, 0) << device;
}

}  // namespace
}  // namespace lockstep::testing::modern_layers_test
