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
  EXPECT_NE(run.out.find("device memory: "), std::string::npos) << run.everything();
  EXPECT_EQ(run.out.find("device memory: 0 B"), std::string::npos) << run.out;
}

TEST(DeviceTest, MicroBatchesBoundTheDevicesMemory) {
  const TemporaryDirectory directory;
  const std::string job = tiny_job(directory) + " parallel.grain=1";
  const auto need = [&](const std::string& overrides) {
    const Outcome outcome = succeed("validate --json " + job + " " + overrides);
    return nlohmann::json::parse(outcome.out)["device_bytes"].get<std::int64_t>();
  };
  EXPECT_LT(need("data.micro_batch=4"), need("data.micro_batch=16"));
  EXPECT_LT(need("data.micro_batch=16"), need(""));
  const Outcome note = lockstep("validate " + job + " data.micro_batch=7 parallel.grain=4");
  expect_words(note.out,
               {"note: data.micro_batch 7: 4 samples are computed at a time, in whole grains of 4\n"});
  expect_says(lockstep("validate " + job + " data.micro_batch=16 model=resnet8"), 2,
              {"data.micro_batch: layer "});
  succeed("validate " + job + " data.micro_batch=16 model=resnet8 parallel.device=cpu");
}

TEST(DeviceTest, LossCurveIsTheCpus) {
  const TemporaryDirectory directory;
  const TrainedRun device = train(directory, "device", 1, "");
  for (const std::string overrides : {"parallel.device=cpu", "parallel.determinism=off"}) {
    const TrainedRun other = train(directory, overrides.substr(overrides.size() - 3), 2, overrides);
    ASSERT_EQ(other.metrics.size(), device.metrics.size()) << overrides;
    for (std::size_t i = 1; i < 4; ++i) {
      EXPECT_NEAR(device.metrics[i]["loss"].get<double>(), other.metrics[i]["loss"].get<double>(), 1e-4)
          << overrides << " " << other.metrics[i];
    }
    EXPECT_NEAR(device.metrics[4]["test_loss"].get<double>(), other.metrics[4]["test_loss"].get<double>(),
                1e-4);
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
  EXPECT_NE(evaluation.err.find(reason), std::string::npos) << evaluation.everything();
  expect_says(run_shell(driver + job + "cuda"), 69, {reason});
#endif
}

TEST(DeviceTest, BenchStepRuns) {
  const TemporaryDirectory directory;
  const Outcome outcome = succeed("bench step " + tiny_job(directory) + " --rounds 1 --steps 1");
  for (const char* text : {"native, graph", "native, no graph", "us/step"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.everything();
  }
}

}  // namespace
}  // namespace lockstep::testing::device_test
