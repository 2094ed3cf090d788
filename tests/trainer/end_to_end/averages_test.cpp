// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Averages of the weights through the whole program: measured beside the weights, and taken for them as RUN@ema and RUN@swa. ways_test.cpp has ranks, devices and stops.
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::averages_test {
namespace {

/// Trains a network with running statistics in five steps an epoch, the last one smaller.
class AveragesTest : public JobTest {
 protected:
  AveragesTest() {
    write_text(path("normed.yaml"),
               "layers:\n  - conv2d: {out: 3, kernel: 5, stride: 3}\n  - batch_norm\n  - relu\n  - flatten\n"
               "  - linear: classes\n");
    write_job(
        "model: normed.yaml\n"
        "data: {set: synthetic, train_samples: 300, test_samples: 50, global_batch: 64}\n"
        "train: {epochs: 3, seed: 7, ema: 0.8, swa: {from_epoch: 2}}\n"
        "parallel: {device: cpu, grain: 16}\n"
        "run: {checkpoint_every_steps: 0, log_every_steps: 1}\n");
  }

  TrainedRun train(const std::string& label, const std::string& overrides = "") const {
    return train_job(job_ + " " + overrides, directory_.path(label), 0);
  }
  static nlohmann::json end_of(const std::string& run) { return read_metrics(run).back(); }

  const std::string job_ = path("job.yaml");
};

TEST_F(AveragesTest, AreMeasuredTakenForTheWeightsAndProved) {
  const TrainedRun run = train("run");
  EXPECT_EQ(train("without", "train.ema=0 train.swa.from_epoch=0").last_line, run.last_line)
      << "the averages change the weights";
  for (const std::string name : {"ema", "swa"}) {
    const std::string average = run.directory + "@" + name;
    const Outcome hash = succeed("hash " + average);
    EXPECT_NE(hash.last_line(), run.last_line);
    EXPECT_EQ(answer_of("eval " + average).at("loss"), end_of(run.directory).at(name + "_test_loss"));
    for (const std::string& command :
         {"inspect " + average, "verify " + average, "export " + average + " --onnx " + path(name + ".onnx"),
          "predict " + average + " " + test::source_path("docs/digit.png"),
          "train " + job_ + " train.max_steps=1 run.dir=" + path("from-" + name) +
              " train.initial_weights=" + average}) {
      succeed(command);
    }
    const std::string begins = read_metrics(path("from-" + name)).front().at("initial_sha256");
    EXPECT_EQ("weights sha256 " + begins, hash.last_line());
    succeed("prove " + path("from-" + name));
  }
  succeed("prove " + run.directory);
}

TEST_F(AveragesTest, AForgedNumberIsRefuted) {
  const TrainedRun run = train("run");
  std::string metrics = read_text(run.directory + "/metrics.jsonl");
  const std::string key = "\"ema_test_accuracy\":0.";
  const std::size_t at = metrics.rfind(key);
  ASSERT_NE(at, std::string::npos);
  metrics[at + key.size()] = metrics[at + key.size()] == '9' ? '8' : '9';
  write_text(run.directory + "/metrics.jsonl", metrics);
  expect_says(lockstep("prove " + run.directory), 1, {"ema_test_accuracy"});
}

TEST_F(AveragesTest, ValidationSamplesMeasureThemToo) {
  const TrainedRun run = train("run", "data.validation=0.2");
  const auto metrics = read_metrics(run.directory);
  const auto epoch = std::ranges::find(metrics, "epoch", [](const auto& event) { return event.at("event"); });
  ASSERT_NE(epoch, metrics.end());
  EXPECT_TRUE(epoch->contains("ema_validation_accuracy"));
  EXPECT_FALSE(epoch->contains("swa_validation_accuracy")) << "no epoch that counts has ended";
  for (const char* key : {"ema_validation_loss", "ema_test_loss", "swa_validation_loss", "swa_test_loss"})
    EXPECT_TRUE(metrics.back().contains(key)) << key;
  succeed("prove " + run.directory);
}

TEST_F(AveragesTest, GoingOnFromOneIsRefusedWithTheFix) {
  const std::string average = train("run", "train.ema=0 train.max_steps=5").directory + "@swa";
  for (const std::string command : {"hash ", "verify "})
    expect_says(lockstep(command + path("run") + "@ema"), 66,
                {"it keeps no average of its weights named ema"});
  expect_says(lockstep("train " + job_ + " run.resume=" + average + " run.dir=" + path("x")), 2,
              {"begin another run with train.initial_weights=" + average});
}

}  // namespace
}  // namespace lockstep::testing::averages_test
