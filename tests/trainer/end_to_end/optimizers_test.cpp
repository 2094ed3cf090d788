// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Clipping, groups, freezing and optimisers through the whole program. What a run says of them, and runs of
/// the version in which momentum was all that an optimiser remembered. ways_test.cpp has ranks, devices,
/// stops and proofs.
#include "common/safetensors.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::optimizers_test {
namespace {

/// A model of 500 parameters; five steps an epoch, the last one smaller.
std::string write_job(const TemporaryDirectory& directory) {
  write_text(directory.path("pooled.yaml"), "layers:\n  - avg_pool: 4\n  - flatten\n  - linear: classes\n");
  auto path = directory.path("job.yaml");
  write_text(path,
             "model: pooled.yaml\n"
             "data: {set: synthetic, train_samples: 300, test_samples: 50, global_batch: 64}\n"
             "train: {epochs: 2, seed: 7}\n"
             "parallel: {device: cpu, grain: 16}\n"
             "run: {checkpoint_every_steps: 0, log_every_steps: 1}\n");
  return path;
}

TrainedRun train(const TemporaryDirectory& directory, const std::string& label,
                 const std::string& overrides) {
  return train_job(write_job(directory) + " " + overrides, directory.path("run-" + label), 0);
}

/// metrics.jsonl has the norm before it is clipped. Where nothing moves the weights otherwise, that of the
/// same run without it.
TEST(OptimizersTest, MetricsHaveTheNormBeforeItIsClippedAndOfTensorsThatMove) {
  const TemporaryDirectory directory;
  const auto first_norm = [&](const std::string& label, const std::string& keys) {
    for (const auto& event : read_metrics(train(directory, label, keys + " train.max_steps=1").directory))
      if (event["event"] == "step") return event["gradient_norm"].get<double>();
    return 0.0;
  };
  const double whole = first_norm("plain", "");
  EXPECT_GT(whole, 0.02);
  EXPECT_EQ(first_norm("norm", "train.clip_norm=0.01"), whole);
  EXPECT_EQ(first_norm("value", "train.clip_value=0.001"), whole);
  const double weight = first_norm("bias", "train.freeze=fc1.bias"),
               bias = first_norm("weight", "train.freeze=fc1.weight");
  EXPECT_NEAR(weight * weight + bias * bias, whole * whole, 1e-12);
}

TEST(OptimizersTest, FrozenTensorsAndWhatIsRememberedOfThemStay) {
  const TemporaryDirectory directory;
  const std::string keys =
      "model=" + test::source_path("tests/arithmetic/small.yaml") +
      " train.optimizer.kind=adam train.optimizer.weight_decay=0.1 'train.freeze=[conv1*, bn1.*]' ";
  for (const std::string device : {"cpu", "emulated"}) {
    const TrainedRun run = train(
        directory, device,
        keys + "train.max_steps=3 run.checkpoint_every_steps=1 run.keep.last=5 parallel.device=" + device);
    const auto tensors = [&](const std::string& step, const std::string& file) {
      return test::read_safetensors(run.directory + "/checkpoints/step-0000000" + step + "/" + file);
    };
    const auto model1 = tensors("1", "model.safetensors"), model3 = tensors("3", "model.safetensors");
    const auto remembered = tensors("3", "optimizer.safetensors");
    const auto same = [&](const std::string& name) {
      return std::ranges::equal(model1.find(name)->bytes, model3.find(name)->bytes);
    };
    for (const char* name : {"conv1.weight", "conv1.bias", "bn1.weight", "bn1.bias"}) {
      EXPECT_TRUE(same(name)) << device << ": " << name;
      const auto bytes = remembered.find(std::string("exp_avg.") + name)->bytes;
      EXPECT_TRUE(std::ranges::all_of(bytes, [](auto byte) { return byte == decltype(byte){0}; })) << name;
    }
    EXPECT_FALSE(same("conv2.weight")) << device;
    EXPECT_FALSE(same("bn1.running_mean")) << device << ": as PyTorch's in train()";
  }
}

TEST(OptimizersTest, OtherGroupsAreOtherWeights) {
  const TemporaryDirectory directory;
  const TrainedRun run =
      train(directory, "run", "'train.groups=[{match: fc*, lr_factor: 0.5}]' train.max_steps=3");
  expect_says(
      lockstep("train " + write_job(directory) + " train.clip_norm=1 run.dir=" + run.directory), 2,
      {"train.clip_norm (was 0, now 1), train.groups (was [{match: \"fc*\", lr_factor: 0.5}], now [])"});
  expect_says(lockstep("validate " + write_job(directory) + " train.freeze=fc2*"), 2,
              {"train.freeze: no tensor of the network has a name like 'fc2*' (did you mean 'fc1*'?)"});
}

TEST(OptimizersTest, MetricsAndAnnouncementTellTheRate) {
  const TemporaryDirectory directory;
  const std::string arguments =
      "train " + write_job(directory) + " run.dir=" + directory.path("run") +
      " 'train.optimizer={lr: 0.1, lr_scaling: {rule: linear, base_batch: 32}}'"
      " 'train.schedule={kind: multistep, by: step, milestones: [3], warmup_steps: 2, warmup_start: 0.5}'";
  const Outcome outcome = lockstep(arguments);
  expect_words(outcome.out, {"sgd, learning rate 0.2 (0.1 for a global batch of 32, linear scaling to 64), "
                             "multistep by step after 2 steps of warm-up\n"});
  std::vector<double> rates;
  for (const auto& event : read_metrics(directory.path("run")))
    if (event["event"] == "step") rates.push_back(event["learning_rate"]);
  ASSERT_EQ(rates.size(), 10U);
  const double expected[] = {0.1, 0.15, 0.2, 0.2, 0.2, 0.02, 0.02, 0.02, 0.02, 0.02};
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(rates[i], expected[i], 1e-15) << i;
}

/// Weights grow by 10^12 a step and are infinite after the fourth, whose losses are still finite. The run
/// ends with it, and must not end well. A checkpoint of the step before is good.
TEST(OptimizersTest, WeightsThatBecomeInfiniteInTheLastStepEndTheRun) {
  const TemporaryDirectory directory;
  const std::string job = write_job(directory) +
                          " model=linear train.optimizer.lr=1e6 train.optimizer.weight_decay=1e6 "
                          "train.optimizer.momentum=0 train.max_steps=4 run.dir=" +
                          directory.path("run") + " ";
  for (const std::string way : {"parallel.backend=thread parallel.ranks=2", "parallel.device=emulated",
                                "parallel.strategy=pipeline parallel.stages=1",
                                "parallel.strategy=hogwild parallel.determinism=off"}) {
    const Outcome outcome = lockstep("train " + job + way);
    expect_says(outcome, 70, {"after step 4: ", "of 7840 numbers of fc.weight are NaN or infinite"});
    EXPECT_EQ(outcome.out.find("done"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("weights sha256"), std::string::npos) << outcome.out;
    EXPECT_FALSE(std::filesystem::exists(directory.path("run/checkpoints/step-00000004"))) << way;
    for (const auto& event : read_metrics(directory.path("run")))
      EXPECT_TRUE(event["event"] != "epoch" && event["event"] != "end") << way << ": " << event;
    std::filesystem::remove_all(directory.path("run"));
  }
}

TEST(OptimizersTest, WarmupLongerThanTheRunIsRefusedWithItsPlace) {
  const TemporaryDirectory directory;
  write_job(directory);
  const std::string path = directory.path("long.yaml");
  std::string text = read_text(directory.path("job.yaml"));
  text.replace(text.find("seed: 7}"), 8, "seed: 7,\n        schedule: {warmup_steps: 10}}");
  write_text(path, text);
  expect_says(lockstep("train " + path + " run.dir=" + directory.path("run")), 2,
              {"long.yaml:4:34: train.schedule.warmup_steps: 10 is not shorter than the run, which "
               "has 10 steps (train.epochs: 2 of 5)"});
  EXPECT_FALSE(std::filesystem::exists(directory.path("run")));
}

/// tests/golden/old_run: 7 of 10 steps, by the program before all devices rounded in the same places.
TEST(OptimizersTest, RunOfAnotherArithmeticIsRefusedByItsNumber) {
  const TemporaryDirectory directory;
  const std::string run = directory.path("run");
  std::filesystem::copy(test::source_path("tests/golden/old_run"), run,
                        std::filesystem::copy_options::recursive);
  const std::string train = "cd " + run + " && $LOCKSTEP_PROGRAM train job.yaml train.max_steps=0 run.dir=.";
  for (const Outcome& refused : {lockstep("eval " + run), lockstep("inspect " + run), run_shell(train)}) {
    expect_says(refused, 2, {"its steps are of arithmetic 1, this program reads 2 and 3; use the release"});
  }
}

}  // namespace
}  // namespace lockstep::testing::optimizers_test
