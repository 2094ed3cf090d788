// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training through the GPU path, from the command line, on the emulated device. ways_test.cpp has ranks, graphs and stops.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::device_test {
namespace {

/// Small: the emulator takes a good part of a second for a step. Three steps an epoch, the last one smaller.
std::string tiny_job(const TemporaryDirectory& directory) {
  auto path = directory.path("tiny.yaml");
  write_text(path,
             "model: net\n"
             "data: {set: synthetic, train_samples: 80, test_samples: 21, global_batch: 32}\n"
             "train: {epochs: 1, seed: 7, optimizer: {kind: sgd, lr: 0.05, momentum: 0.5}}\n"
             "parallel: {device: emulated, grain: 8}\n"
             "run: {dir: unused, checkpoint_every_steps: 2, log_every_steps: 1}\n");
  return path;
}

TrainedRun train(const TemporaryDirectory& directory, const std::string& label, int ranks,
                 const std::string& overrides) {
  return train_job(tiny_job(directory) + " " + overrides, directory.path("run-" + label),
                   ranks == 1 ? 0 : ranks);
}

TEST(DeviceTest, RunEndsWithWhatItHasOfTheDevicesMemory) {
  const TemporaryDirectory directory;
  const Outcome run =
      lockstep("train " + tiny_job(directory) + " train.max_steps=1 run.dir=" + directory.path("run"));
  expect_says(run, 0, {"device memory: "});
  EXPECT_EQ(run.out.find("device memory: 0 B"), std::string::npos) << run.out;
}

TEST(DeviceTest, MicroBatchesBoundTheDevicesMemory) {
  const TemporaryDirectory directory;
  const std::string job = tiny_job(directory) + " parallel.grain=1";
  const auto need = [&](const std::string& overrides) {
    return answer_of("validate " + job + " " + overrides)["device_bytes"].get<std::int64_t>();
  };
  EXPECT_LT(need("data.micro_batch=4"), need("data.micro_batch=16"));
  EXPECT_LT(need("data.micro_batch=16"), need(""));
  expect_says(lockstep("validate " + job + " data.micro_batch=7 parallel.grain=4"), 0,
              {"note: data.micro_batch 7: 4 samples are computed at a time, in whole grains of 4\n"});
  expect_says(lockstep("validate " + job + " data.micro_batch=16 model=resnet8"), 2,
              {"data.micro_batch: layer "});
  succeed("validate " + job + " data.micro_batch=16 model=resnet8 parallel.device=cpu");
}

/// With it, losses are those of a CPU (ways_test.cpp, arithmetic_test.cpp).
TEST(DeviceTest, WithoutDeterminismTheLossCurveIsTheSame) {
  const TemporaryDirectory directory;
  const auto with = train(directory, "with", 1, "").metrics,
             without = train(directory, "without", 2, "parallel.determinism=off").metrics;
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t i = 1; i < 5; ++i) {
    const char* loss = i < 4 ? "loss" : "test_loss";
    EXPECT_NEAR(with[i][loss].get<double>(), without[i][loss].get<double>(), 1e-4) << without[i];
  }
}

TEST(DeviceTest, ADriverThatIsTooOldIsSaidAndTheCpuTrains) {
#ifndef LOCKSTEP_OLD_DRIVER
  GTEST_SKIP() << "this build has no CUDA, and asks no driver";
#else
  const TemporaryDirectory directory;
  const std::string driver = "LD_LIBRARY_PATH=" LOCKSTEP_OLD_DRIVER " ";
  const std::string job = "$LOCKSTEP_PROGRAM train " + tiny_job(directory) +
                          " train.max_steps=1 run.dir=" + directory.path("run") + " parallel.device=";
  const std::string reason = "the NVIDIA driver is too old: it supports CUDA 11.4";
  expect_says(run_shell(driver + job + "auto"), 0, {"no GPU is used: " + reason});
  const auto evaluation =
      ended_well(run_shell(driver + "$LOCKSTEP_PROGRAM eval " + directory.path("run") + " --device auto"));
  expect_words(evaluation.err, {reason});
  expect_says(run_shell(driver + job + "cuda"), 69, {reason});
#endif
}

}  // namespace
}  // namespace lockstep::testing::device_test
