// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a trained run to other classes. What fits is taken, the rest starts from the seed, and the program says which.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::fine_tuning_test {
namespace {

/// A run of `net` on ten classes, and a job whose last layer has another name.
class FineTuningTest : public JobTest {
 protected:
  FineTuningTest() : job_(write_small_job(directory_)) {
    write_text(path("other.yaml"),
               "layers:\n  - conv2d: {name: conv1, out: 10, kernel: 5}\n  - max_pool: 2\n  - relu\n"
               "  - conv2d: {name: conv2, out: 8, kernel: 5}\n  - max_pool: 2\n  - linear: {name: head, out: "
               "classes}\n");
    succeed("train " + job_ + " train.epochs=1");
  }

  Outcome train(const std::string& label, const std::string& overrides) const {
    return lockstep("train " + job_ + " model=" + path("other.yaml") +
                    " train.epochs=1 run.dir=" + path(label) + " " + overrides);
  }
  std::string taken() const { return "train.initial_weights=" + path("run") + " train.partial=true "; }

  std::string job_;
};

TEST_F(FineTuningTest, WhatFitsIsTakenAndSaidAndTheRestIsThatOfTheSeed) {
  expect_says(train("tuned", taken() + "train.max_steps=1"), 0,
              {"initial weights: " + path("run") +
                   "/checkpoints/step-00000003/model.safetensors (epoch 1, step 3, test accuracy ",
               " %): 2 of 6 tensors by name (train.partial)\n", "  taken: conv1.weight, conv1.bias\n",
               "  new, from train.seed: conv2.weight [8, 10, 5, 5], of which the file has [20, 10, 5, 5]; "
               "conv2.bias [8], "
               "of which the file has [20]; head.weight [10, 128]; head.bias [10]\n",
               "  not used: fc1.weight, fc1.bias, fc2.weight, fc2.bias\n"});
  const auto start = read_metrics(path("tuned")).front();
  EXPECT_EQ(start.at("initial_tensors"), 2);
  EXPECT_EQ(start.at("new_tensors").size(), 4U);
  EXPECT_EQ(start.at("unused_tensors").size(), 4U);
}

TEST_F(FineTuningTest, AnOnnxFileIsTakenInPartAsTheRunIsThatItIsOf) {
  const std::string onnx = path("run.onnx");
  succeed("export " + path("run") + " --onnx " + onnx);
  expect_says(train("tuned", "train.partial=true train.initial_weights=" + onnx), 0,
              {onnx + ": 2 of 6 tensors by name (train.partial)\n"});
  ended_well(train("same", taken()));
  EXPECT_EQ(read_metrics(path("tuned")).front().at("initial_sha256"),
            read_metrics(path("same")).front().at("initial_sha256"));
}

TEST_F(FineTuningTest, GoesOnToTheSameWeightsWithoutItsSource) {
  const auto alone = ended_well(train("alone", taken()));
  EXPECT_NE(alone.last_line(), train("fresh", "").last_line()) << "nothing was taken";
  succeed("prove " + path("alone"));
  ended_well(train("parts", taken() + "train.max_steps=1"));
  std::filesystem::rename(path("run"), path("gone"));
  const Outcome parts = train("parts", taken());
  EXPECT_EQ(parts.last_line(), alone.last_line()) << parts.everything();
  expect_words(lockstep("prove " + path("parts")).out, {"which is not there"});
}

TEST_F(FineTuningTest, AProofSaysThatTheSourceHasChangedMeanwhile) {
  ended_well(train("tuned", taken()));
  succeed("train " + job_);  // trains the source further
  const Outcome proved = lockstep("prove " + path("tuned"));
  expect_words(proved.out, {"holds other weights than when the run began from it"});
  EXPECT_EQ(proved.out.find("trail.bin was changed"), std::string::npos) << proved.everything();
}

}  // namespace
}  // namespace lockstep::testing::fine_tuning_test
