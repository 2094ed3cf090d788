// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs with another loss than the plain cross-entropy: one set of weights in every way, judged as they say.
#include "data/sets/shards.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <span>
#include <vector>

namespace lockstep::testing {
namespace {

constexpr const char* kSmallJob =
    "model: linear\n"
    "data: {set: synthetic, train_samples: 600, test_samples: 90, global_batch: 128, validation: 0.1}\n"
    "train: {epochs: 2, optimizer: {lr: 0.05}}\n"
    "parallel: {device: cpu, grain: 16, backend: thread}\n"
    "run: {checkpoint_every_steps: 2, log_every_steps: 1, report: false}\n";

const std::string kLosses[] = {
    "train.label_smoothing=0.1 train.class_weights=[1,0.5,2,0,1,3,0.25,1,1.5,1]",
    "train.loss=binary_cross_entropy train.label_smoothing=0.05",
    "train.loss=mse",
    "train.class_weights=balanced",
};

/// Sanitizers take five times as long, and find what they find in one loss of all classes and one of each by itself.
constexpr std::size_t kLossCount = test::effort<std::size_t>(std::size(kLosses), 2);

class LossRunTest : public ::testing::Test {
 protected:
  void SetUp() override { write_text(path("job.yaml"), kSmallJob); }
  Outcome train(const std::string& run, const std::string& overrides,
                const std::string& launcher = "") const {
    return run_shell(launcher + " " + std::getenv("LOCKSTEP_PROGRAM") + " train " + path("job.yaml") +
                     " run.dir=" + path(run) + " " + overrides);
  }
  std::vector<nlohmann::json> metrics_of(const std::string& run, const std::string& overrides,
                                         const std::string& launcher = "") const {
    const auto outcome = train(run, overrides, launcher);
    EXPECT_EQ(outcome.exit_code, 0) << overrides << outcome.everything();
    return comparable_metrics(path(run));
  }
  std::string path(const std::string& name) const { return directory_.path(name); }

 private:
  TemporaryDirectory directory_;
};

/// Instruction sets are compared loss by loss in tests/arithmetic and tests/kernels; what a stop leaves is the same for
/// all losses. So the first one, which has everything, is enough for both.
TEST_F(LossRunTest, RanksDevicesAndStopsLeaveNoTrace) {
  for (const std::string& loss : std::span(kLosses).first(kLossCount)) {
    SCOPED_TRACE(loss);
    const std::string run = "run" + std::to_string(&loss - kLosses);
    const auto alone = metrics_of(run, loss);
    for (const std::string ways : {"parallel.backend=thread parallel.ranks=3", "parallel.threads=2",
                                   "parallel.device=emulated", "parallel.device=emulated parallel.graph=off"})
      EXPECT_EQ(metrics_of(run + "-" + std::to_string(ways.size()), loss + " " + ways), alone) << ways;
    if (&loss != &kLosses[0]) continue;
    const std::string series =
        " parallel.device=emulated run.log_every_steps=100 run.checkpoint_every_steps=0";
    EXPECT_EQ(metrics_of(run + "-series", loss + series).back(), alone.back());
    for (const std::string simd : {"sse4", "portable"})
      EXPECT_EQ(metrics_of(run + simd, loss, "LOCKSTEP_SIMD=" + simd), alone) << simd;
    int starts = 1;
    while (train(run + "-stopped", loss + " run.max_seconds=0.001").exit_code == 75 && starts < 50) ++starts;
    EXPECT_GT(starts, 9);
    EXPECT_EQ(comparable_metrics(path(run + "-stopped")), alone);
  }
}

TEST_F(LossRunTest, StagesHaveTheWeightsOfTheWholeNetwork) {
  for (const std::string& loss : std::span(kLosses).first(kLossCount)) {
    SCOPED_TRACE(loss);
    const std::string run = "run" + std::to_string(&loss - kLosses), model = loss + " model=mlp ";
    const auto whole = metrics_of(run, model).back();
    const std::string stages = model + "parallel.strategy=pipeline parallel.backend=thread parallel.ranks=2";
    EXPECT_EQ(metrics_of(run + "-stages", stages).back(), whole);
    EXPECT_EQ(metrics_of(run + "-emulated", stages + " parallel.device=emulated").back(), whole);
  }
}

TEST_F(LossRunTest, EvalAndProveKnowTheLoss) {
  std::string weights;
  for (const std::string& loss : std::span(kLosses).first(kLossCount)) {
    SCOPED_TRACE(loss);
    const std::string run = "run" + std::to_string(&loss - kLosses);
    const auto end = metrics_of(run, loss).back();
    EXPECT_NE(end["weights_sha256"].dump(), weights) << "the loss changes nothing";
    weights = end["weights_sha256"].dump();
    for (const std::string device : {"cpu", "emulated"}) {
      const auto judged =
          nlohmann::json::parse(lockstep("eval " + path(run) + " --json --device " + device).out);
      EXPECT_EQ(judged["loss"], end["test_loss"]) << device;
      EXPECT_EQ(judged["accuracy"], end["test_accuracy"]) << device;
    }
    const auto proved = lockstep("prove " + path(run));
    EXPECT_EQ(proved.exit_code, 0) << proved.everything();
    const auto other = train(run, "train.label_smoothing=0.3");
    EXPECT_EQ(other.exit_code, 2) << "a run does not go on with another loss" << other.everything();
  }
}

/// A set on the disk whose samples have any number of five labels: a patch of the picture is bright for each.
class LabelSetsRunTest : public LossRunTest {
 protected:
  void SetUp() override {
    ShardWriter writer(Env::posix(), path("set"), {1, kSide, kSide}, {"a", "b", "c", "d", "e"},
                       {.has_label_sets = true});
    add_half(writer, SetHalf::kTrain, 300);
    add_half(writer, SetHalf::kTest, 70);
    writer.publish();
    write_text(path("job.yaml"),
               "model: mlp\n"
               "data: {set: shards, root: '" +
                   path("set") +
                   "', global_batch: 96, validation: 0.1}\n"
                   "train: {epochs: 2, loss: binary_cross_entropy, optimizer: {lr: 0.5}}\n"
                   "parallel: {device: cpu, grain: 16, backend: thread}\n"
                   "run: {checkpoint_every_steps: 2, log_every_steps: 1, report: false}\n");
  }

 private:
  static constexpr int kSide = 10;
  static constexpr unsigned kClasses = 5;

  static void add_half(ShardWriter& writer, SetHalf half, unsigned samples) {
    unsigned draws = samples;
    for (unsigned n = 0; n < samples; ++n) {
      std::vector<std::uint32_t> labels;
      unsigned set = 0;
      for (unsigned c = 0; c < kClasses; ++c) {
        draws = draws * 1664525 + 1013904223;
        if ((draws >> 24) % 3 != 0) continue;
        set |= 1U << c;
        labels.push_back(c);
      }
      std::vector<std::uint8_t> image;
      for (unsigned pixel = 0; pixel < kSide * kSide; ++pixel) {
        draws = draws * 1664525 + 1013904223;
        image.push_back(
            static_cast<std::uint8_t>((set >> pixel / 2 % kClasses & 1U) * 120 + (draws >> 24) % 100));
      }
      writer.add(half, image, labels);
    }
  }
};

TEST_F(LabelSetsRunTest, RanksDevicesAndStopsLeaveNoTrace) {
  const auto alone = metrics_of("run", "");
  EXPECT_GT(alone.back()["test_accuracy"].get<double>(), 0.25) << "the most frequent set has an eighth";
  for (const std::string ways :
       {"parallel.backend=thread parallel.ranks=3", "parallel.threads=2", "parallel.device=emulated",
        "parallel.device=emulated parallel.graph=off", "parallel.device=emulated data.micro_batch=16"})
    EXPECT_EQ(metrics_of("run-" + std::to_string(ways.size()), ways), alone) << ways;
  const std::string stages = "parallel.strategy=pipeline parallel.backend=thread parallel.ranks=2";
  EXPECT_EQ(metrics_of("stages", stages).back(), alone.back());
  EXPECT_EQ(metrics_of("stages-emulated", stages + " parallel.device=emulated").back(), alone.back());
  int starts = 1;
  while (train("stopped", "run.max_seconds=0.001").exit_code == 75 && starts < 50) ++starts;
  EXPECT_GT(starts, 3);
  EXPECT_EQ(comparable_metrics(path("stopped")), alone);
}

TEST_F(LabelSetsRunTest, ToolsKnowThem) {
  const auto end = metrics_of("run", "").back();
  for (const std::string device : {"cpu", "emulated"}) {
    const auto judged =
        nlohmann::json::parse(lockstep("eval " + path("run") + " --json --device " + device).out);
    EXPECT_EQ(judged["loss"], end["test_loss"]) << device;
    EXPECT_EQ(judged["accuracy"], end["test_accuracy"]) << device;
  }
  EXPECT_EQ(lockstep("prove " + path("run")).exit_code, 0);
  const auto page = lockstep("report " + path("run"));
  EXPECT_EQ(page.exit_code, 0) << page.everything();
  const auto sheet = lockstep("validate " + path("job.yaml") + " --pictures " + path("sheet.png"));
  EXPECT_EQ(sheet.exit_code, 0) << sheet.everything();
}

TEST_F(LabelSetsRunTest, WhatIsOfOneLabelIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"train.loss=cross_entropy",
       "have several labels, and train.loss cross_entropy is for one; train with"},
      {"train.loss=mse", "train.loss mse is for one"},
      {"train.label_smoothing=0.1", "train.label_smoothing: samples of"},
      {"data.balance_classes=true", "data.balance_classes: samples of"},
  };
  for (const auto& [overrides, message] : cases) {
    const auto outcome = train("run", overrides);
    EXPECT_EQ(outcome.exit_code, 2) << overrides;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.everything();
  }
  metrics_of("run", "train.max_steps=1");
  const auto classes = lockstep("eval " + path("run") + " --classes");
  EXPECT_EQ(classes.exit_code, 2);
  EXPECT_NE(classes.err.find("--classes: samples of"), std::string::npos) << classes.everything();
}

TEST_F(LossRunTest, TheStartSaysTheNumbers) {
  const auto outcome =
      train("run", "train.class_weights=balanced train.label_smoothing=0.25 train.max_steps=1");
  EXPECT_NE(outcome.out.find("\nloss: cross_entropy, label smoothing 0.25, class weights (balanced) "),
            std::string::npos)
      << outcome.everything();
  const auto plain = train("plain", "train.max_steps=1");
  EXPECT_EQ(plain.out.find("loss: cross_entropy"), std::string::npos) << plain.everything();
}

TEST_F(LossRunTest, HogwildTrainsByIt) {
  for (const std::string& loss : std::span(kLosses).first(kLossCount)) {
    const auto outcome =
        train("run" + std::to_string(&loss - kLosses),
              loss +
                  " parallel.strategy=hogwild parallel.determinism=off parallel.backend=thread "
                  "parallel.ranks=2");
    EXPECT_EQ(outcome.exit_code, 0) << loss << outcome.everything();
  }
}

}  // namespace
}  // namespace lockstep::testing
