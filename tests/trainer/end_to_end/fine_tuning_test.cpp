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

  Outcome train(const std::string& label, const std::string& overrides, int ranks = 0) const {
    const std::string command = "train " + job_ + " model=" + path("other.yaml") +
                                " train.epochs=1 run.dir=" + path(label) + " " + overrides;
    return ranks == 0 ? lockstep(command) : lockstep_on_ranks(ranks, command);
  }
  std::string taken() const { return "train.initial_weights=" + path("run") + " train.partial=true "; }

  std::string job_;
};

TEST_F(FineTuningTest, WhatFitsIsTakenAndSaidAndTheRestIsThatOfTheSeed) {
  const auto outcome = ended_well(train("tuned", taken() + "train.max_steps=1"));
  for (const std::string& line :
       {"initial weights: " + path("run") +
            "/checkpoints/step-00000003/model.safetensors (epoch 1, step 3, test accuracy ",
        std::string(" %): 2 of 6 tensors by name (train.partial)\n"),
        std::string("  taken: conv1.weight, conv1.bias\n"),
        std::string("  new, from train.seed: conv2.weight [8, 10, 5, 5], of which the file has [20, 10, 5, "
                    "5]; conv2.bias [8], "
                    "of which the file has [20]; head.weight [10, 128]; head.bias [10]\n"),
        std::string("  not used: fc1.weight, fc1.bias, fc2.weight, fc2.bias\n")})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.everything();
  const auto start = read_metrics(path("tuned")).front();
  EXPECT_EQ(start.at("initial_tensors"), 2);
  EXPECT_EQ(start.at("new_tensors").size(), 4U);
  EXPECT_EQ(start.at("unused_tensors").size(), 4U);
}

TEST_F(FineTuningTest, AnOnnxFileIsTakenInPartAsTheRunIsThatItIsOf) {
  const std::string onnx = path("run.onnx");
  succeed("export " + path("run") + " --onnx " + onnx);
  const auto outcome = ended_well(train("tuned", "train.partial=true train.initial_weights=" + onnx));
  expect_words(outcome.out, {onnx + ": 2 of 6 tensors by name (train.partial)\n"});
  EXPECT_EQ(read_metrics(path("tuned")).front().at("initial_sha256"),
            (train("same", taken()), read_metrics(path("same")).front().at("initial_sha256")));
}

TEST_F(FineTuningTest, GoesOnToTheSameWeightsWithoutItsSource) {
  const auto alone = ended_well(train("alone", taken()));
  EXPECT_NE(alone.last_line(), train("fresh", "").last_line()) << "nothing was taken";
  succeed("prove " + path("alone"));
  ASSERT_EQ(train("parts", taken() + "train.max_steps=1").exit_code, 0);
  std::filesystem::rename(path("run"), path("gone"));
  const Outcome parts = train("parts", taken());
  EXPECT_EQ(parts.last_line(), alone.last_line()) << parts.everything();
  const Outcome proved = lockstep("prove " + path("parts"));
  EXPECT_NE(proved.out.find("which is not there"), std::string::npos) << proved.everything();
}

TEST_F(FineTuningTest, AProofSaysThatTheSourceHasChangedMeanwhile) {
  ASSERT_EQ(train("tuned", taken()).exit_code, 0);
  ASSERT_EQ(lockstep("train " + job_).exit_code, 0);  // trains the source further
  const Outcome proved = lockstep("prove " + path("tuned"));
  expect_words(proved.out, {"holds other weights than when the run began from it"});
  EXPECT_EQ(proved.out.find("trail.bin was changed"), std::string::npos) << proved.everything();
}

TEST_F(FineTuningTest, ErrorsSayTheNextCommand) {
  const std::string from = "train.initial_weights=" + path("run") + " ";
  expect_says(train("x", from), 65,
              {". train.partial=true takes what fits, 2 of 6 tensors, and starts the rest afresh"});
  expect_says(train("x", "train.partial=true"), 2, {"add train.initial_weights=RUN or a file"});
  expect_says(train("x", from + "train.partial=true model=linear"), 65,
              {"none of its tensors has the name and shape"});
  expect_says(lockstep("train " + job_ + " train.optimizer.lr=0.01"), 2,
              {"To train on from its weights with these: train.initial_weights=" + path("run") +
               " and another run.dir"});
  expect_says(lockstep("train " + job_ + " model=" + path("other.yaml")), 2,
              {"train.initial_weights=" + path("run") + " train.partial=true and another run.dir"});
}

}  // namespace
}  // namespace lockstep::testing::fine_tuning_test
