// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training through the GPU path, from the command line, on the emulated device.
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

TEST(DeviceTest, RanksBackendsBucketsAndGraphsLeaveNoTrace) {
  const TemporaryDirectory directory;
  const TrainedRun alone = train(directory, "alone", 1, "");
  ASSERT_EQ(alone.metrics.size(), 6U);  // start, 3 steps, 1 epoch, end
  EXPECT_EQ(alone.metrics[4]["train_samples"], 80);
  EXPECT_EQ(alone.metrics[4]["test_samples"], 21);
  expect_same(train(directory, "np2", 2, ""), alone, "2 ranks over MPI");
  expect_same(train(directory, "np3", 3, "parallel.graph=off parallel.bucket_bytes=1000"), alone, "3 ranks");
  expect_same(train(directory, "thread4", 1, "parallel.backend=thread parallel.ranks=4"), alone, "4 threads");
  expect_same(train(directory, "direct", 1, "parallel.graph=off"), alone, "without graphs");
  expect_same(train(directory, "series", 1, "run.log_every_steps=1 run.checkpoint_every_steps=0"), alone,
              "without checkpoints");
}

/// With all that goes by a sample's place in the batch, or by the whole batch; of grains of one sample.
std::string job_in_micro_batches(const TemporaryDirectory& directory) {
  write_text(directory.path("small.yaml"),
             "layers:\n  - conv2d: {out: 2, kernel: 5, stride: 4}\n  - relu\n  - dropout: 0.3\n"
             "  - linear: classes\n");
  auto path = directory.path("micro.yaml");
  write_text(path,
             "model: small.yaml\n"
             "data: {set: synthetic, train_samples: 62, test_samples: 21, validation: 10, global_batch: 20,\n"
             "  augment: [{shift: {horizontal: 0.1, vertical: 0.1}}, {erase: {probability: 0.6}}]}\n"
             "train: {epochs: 1, seed: 7, clip_norm: 0.5, label_smoothing: 0.1, ema: 0.5,\n"
             "  class_weights: [1, 0.5, 2, 1, 1, 3, 0.25, 1, 1.5, 1], optimizer: {kind: sgd, lr: 0.05, "
             "momentum: 0.5}}\n"
             "parallel: {device: emulated, backend: thread, ranks: 1, grain: 1}\n"
             "run: {dir: unused, checkpoint_every_steps: 0, log_every_steps: 1, report: false}\n");
  return path;
}

TEST(DeviceTest, MicroBatchesLeaveNoTrace) {
  const TemporaryDirectory directory;
  const std::string job = job_in_micro_batches(directory);
  const auto train = [&](const std::string& label, const std::string& overrides) {
    return train_job(job + " " + overrides, directory.path(label), 0);
  };
  const auto of_size = [](int size) { return "data.micro_batch=" + std::to_string(size); };
  const TrainedRun whole = train("whole", "");
  expect_same(train("cpu", of_size(7) + " parallel.device=cpu"), whole, "a CPU");
  for (const int ranks : {1, 2, 3}) {
    for (const int size : {1, 3, 7, 16}) {
      const std::string label = std::to_string(ranks) + "x" + std::to_string(size);
      const std::string keys = of_size(size) + " parallel.ranks=" + std::to_string(ranks);
      expect_same(train(label, keys + (size == 7 ? " parallel.graph=off" : "")), whole, label);
    }
    const std::string label = "resumed" + std::to_string(ranks);
    train(label, of_size(3) + " train.max_steps=2 parallel.ranks=" + std::to_string(ranks));
    expect_same(train(label, of_size(16)), whole, label);
  }
  succeed("prove " + directory.path("1x7") + " --device emulated");
}

TEST(DeviceTest, MicroBatchesBoundTheDevicesMemory) {
  const TemporaryDirectory directory;
  const std::string job = job_in_micro_batches(directory);
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

TEST(DeviceTest, ThreadOrderLeavesNoTrace) {
  const TemporaryDirectory directory;
  const TrainedRun natural = train(directory, "natural", 1, "train.max_steps=1");
  setenv("LOCKSTEP_THREAD_ORDER", "11", 1);
  const TrainedRun shuffled = train(directory, "shuffled", 1, "train.max_steps=1");
  unsetenv("LOCKSTEP_THREAD_ORDER");
  expect_same(shuffled, natural, "shuffled threads");
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

TEST(DeviceTest, DivergedTrainingKeepsTheLastGoodWeights) {
  const TemporaryDirectory directory;
  const auto arguments = "train " + tiny_job(directory) + " run.dir=" + directory.path("run") +
                         " train.optimizer.lr=1e6 train.epochs=5";
  expect_says(lockstep(arguments), 70, {"train.optimizer.lr"});
}

TEST(DeviceTest, EvaluationOfItsCheckpointAgrees) {
  const TemporaryDirectory directory;
  const TrainedRun run = train(directory, "run", 1, "train.max_steps=1");
  std::vector<std::string> outputs;
  for (const std::string device : {"cpu", "emulated"}) {
    const Outcome outcome = succeed("eval " + directory.path("run-run") + " --device " + device);
    EXPECT_EQ(outcome.last_line(), run.last_line) << device;
    outputs.push_back(outcome.out);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
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
  const Outcome evaluation =
      run_shell(driver + "$LOCKSTEP_PROGRAM eval " + directory.path("run") + " --device auto");
  EXPECT_EQ(evaluation.exit_code, 0) << evaluation.everything();
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
