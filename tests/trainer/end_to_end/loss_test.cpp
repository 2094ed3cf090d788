// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs with another loss than the plain cross-entropy, judged as they say; sets with several labels in every way.
#include "data/sets/shards.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

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

class LossRunTest : public JobTest {
 protected:
  void SetUp() override { write_job(kSmallJob); }
  /// By `eval` and `prove`, as the end of its metrics says.
  void expect_judged_and_proved(const std::string& run, const nlohmann::json& end) const {
    for (const std::string device : {"cpu", "emulated"}) {
      const auto judged = answer_of("eval " + path(run) + " --device " + device);
      EXPECT_EQ(judged["loss"], end["test_loss"]) << device;
      EXPECT_EQ(judged["accuracy"], end["test_accuracy"]) << device;
    }
    succeed("prove " + path(run));
  }
};

TEST_F(LossRunTest, EvalAndProveKnowTheLoss) {
  std::string weights;
  for (const std::string& loss : kLosses) {
    SCOPED_TRACE(loss);
    const std::string run = "run" + std::to_string(&loss - kLosses);
    const auto end = metrics_of(run, loss).back();
    EXPECT_NE(end["weights_sha256"].dump(), weights) << "the loss changes nothing";
    weights = end["weights_sha256"].dump();
    expect_judged_and_proved(run, end);
    succeed("export " + path(run) + " --onnx " + path(run + ".onnx"));
    const bool is_mse = loss.find("mse") != loss.npos, is_binary = loss.find("binary") != loss.npos;
    expect_words(read_text(path(run + ".onnx")),
                 {is_mse      ? "logits: float32 [N, 10]; trained towards 1 for the class and 0 for others"
                  : is_binary ? "logits: float32 [N, 10]; sigmoid makes probabilities of them"
                              : "logits: float32 [N, 10]; softmax makes probabilities of them"});
    expect_says(train(run, "train.label_smoothing=0.3"), 2);  // a run does not go on with another loss
    metrics_of("hogwild-" + run,
               loss + " parallel.strategy=hogwild parallel.determinism=off parallel.ranks=2");
  }
}

/// A set on the disk whose samples have any number of five labels. A patch of the picture is bright for each.
class LabelSetsRunTest : public LossRunTest {
 protected:
  void SetUp() override {
    ShardWriter writer(Env::posix(), path("set"), {1, kSide, kSide}, {"a", "b", "c", "d", "e"},
                       {.has_label_sets = true});
    add_half(writer, SetHalf::kTrain, 300);
    add_half(writer, SetHalf::kTest, 70);
    writer.publish();
    write_job(
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

TEST_F(LabelSetsRunTest, ToolsKnowThem) {
  const auto end = metrics_of("run", "").back();
  EXPECT_GT(end["test_accuracy"].get<double>(), 0.25) << "the most frequent set has an eighth";
  expect_judged_and_proved("run", end);
  succeed("report " + path("run"));
  succeed("validate " + path("job.yaml") + " --pictures " + path("sheet.png"));
}

TEST_F(LabelSetsRunTest, WhatIsOfOneLabelIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"train.loss=cross_entropy",
       "have several labels, and train.loss cross_entropy is for one; train with"},
      {"train.loss=mse", "train.loss mse is for one"},
      {"train.label_smoothing=0.1", "train.label_smoothing: samples of"},
      {"data.balance_classes=true", "data.balance_classes: samples of"},
  };
  for (const auto& [overrides, message] : cases) expect_says(train("run", overrides), 2, {message});
  metrics_of("run", "train.max_steps=1");
  expect_says(lockstep("eval " + path("run") + " --classes"), 2, {"--classes: samples of"});
}

TEST_F(LossRunTest, TheStartSaysTheNumbers) {
  expect_says(train("run", "train.class_weights=balanced train.label_smoothing=0.25 train.max_steps=1"), 0,
              {"\nloss: cross_entropy, label smoothing 0.25, class weights (balanced) "});
}

}  // namespace
}  // namespace lockstep::testing
