// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs with another loss than the plain cross-entropy: one set of weights in every way, judged as they say.
#include "tests/support/effort.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <span>

namespace lockstep::testing {
namespace {

constexpr const char* kSmallJob =
    "model: linear\n"
    "data: {set: synthetic, train_samples: 600, test_samples: 90, global_batch: 128, validation: 0.1}\n"
    "train: {epochs: 2, optimizer: {lr: 0.05}}\n"
    "parallel: {device: cpu, grain: 16}\n"
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
