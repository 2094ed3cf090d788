// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job's loss against 50 steps of PyTorch in double (tests/golden/make_golden.py), and what is refused of it.
#include "trainer/training/training_loss.hpp"

#include "common/safetensors.hpp"
#include "gtest/gtest.h"
#include "kernels/cpu/ops.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/setup/job_setup.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kSamples = 96, kFeatures = 7, kClasses = 5, kSteps = 50, kColumns = 32;
constexpr double kRate = 0.2;

const SafetensorsFile& golden() {
  static const SafetensorsFile file =
      test::read_safetensors(test::source_path("tests/golden/losses.safetensors"));
  return file;
}

template <typename T>
std::vector<T> values_of(const std::string& name, const char* dtype, const std::vector<std::size_t>& shape) {
  return test::values_of<T>(golden(), name, dtype, shape);
}

Job job_with(const std::string& train, const std::string& augment = "[]") {
  return parse_job("{model: linear, data: {set: idx, root: here}, train: {" + train + "}}", "job.yaml",
                   {"data.augment=" + augment});
}

Dataset set_of(const std::vector<std::int32_t>& labels, std::size_t classes) {
  Dataset set;
  set.name = "ours train";
  set.classes = static_cast<int>(classes);
  set.labels = labels;
  return set;
}

struct LossCase {
  const char* name;  ///< in the file
  const char* train;
  const char* augment = "[]";
};

constexpr const char* kMixup = "[{mixup: {alpha: 0.2}}]";

const LossCase kCases[] = {
    {"plain", "seed: 1"},
    {"smoothed", "label_smoothing: 0.1"},
    {"weights", "class_weights: [0.5, 2, 1, 0, 3.25]"},
    {"balanced", "class_weights: balanced"},
    {"both", "class_weights: [0.5, 2, 1, 0, 3.25], label_smoothing: 0.3"},
    {"mse", "loss: mse"},
    {"mse_smoothed", "loss: mse, label_smoothing: 0.2"},
    {"binary", "loss: binary_cross_entropy"},
    {"binary_smoothed", "loss: binary_cross_entropy, label_smoothing: 0.2"},
    {"mixed", "seed: 1", kMixup},
    {"mixed_smoothed", "label_smoothing: 0.1", kMixup},
    {"mixed_weights", "class_weights: [0.5, 2, 1, 0, 3.25]", kMixup},
    {"mixed_both", "class_weights: [0.5, 2, 1, 0, 3.25], label_smoothing: 0.3", kMixup},
};

/// A linear layer in double, whose outputs go through the kernel.
class LinearModel {
 public:
  explicit LinearModel(const std::vector<std::int32_t>& labels) : labels_(labels) {}

  /// @param second  of the batch; null: samples have one label
  double step(const TrainingLoss& loss, std::span<const std::int32_t> batch, const MixedLabel* second) {
    std::vector<float> outputs(kClasses * kColumns);
    std::vector<std::int32_t> labels;
    for (std::size_t n = 0; n < batch.size(); ++n) {
      labels.push_back(labels_[static_cast<std::size_t>(batch[n])]);
      for (std::size_t c = 0; c < kClasses; ++c)
        outputs[c * kColumns + n] = static_cast<float>(std::inner_product(
            sample(batch[n]), sample(batch[n]) + kFeatures, &weights_[c * kFeatures], 0.0));
    }
    const LossShape shape{.batch = kColumns,
                          .samples = static_cast<int>(batch.size()),
                          .classes = kClasses,
                          .rule = loss.rule(loss.scale_of(batch)),
                          .mixed = second};
    LossSums sums;
    cpu::loss_and_gradient(shape, outputs.data(), labels.data(), outputs.data(), &sums);
    const auto count = static_cast<double>(batch.size());
    for (std::size_t n = 0; n < batch.size(); ++n)
      for (std::size_t c = 0; c < kClasses; ++c)
        for (std::size_t f = 0; f < kFeatures; ++f)
          weights_[c * kFeatures + f] -=
              kRate / count * double{outputs[c * kColumns + n]} * double{sample(batch[n])[f]};
    return sums.loss / count;
  }
  const std::vector<double>& weights() const { return weights_; }

 private:
  const float* sample(std::int32_t n) const { return &samples_[static_cast<std::size_t>(n) * kFeatures]; }

  std::vector<float> samples_ = values_of<float>("samples", "F32", {kSamples, kFeatures});
  std::vector<std::int32_t> labels_;
  std::vector<double> weights_ = values_of<double>("initial", "F64", {kClasses, kFeatures});
};

void expect_fifty_steps_of_pytorch(const LossCase& c, const Dataset& set) {
  SCOPED_TRACE(c.name);
  const auto sizes = values_of<std::int32_t>("batch_sizes", "I32", {kSteps});
  const auto total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  const auto order = values_of<std::int32_t>("order", "I32", {total});
  const auto labels = values_of<std::int32_t>("second", "I32", {total});
  const auto shares = values_of<float>("shares", "F32", {total});
  std::vector<MixedLabel> second;
  for (std::size_t i = 0; i < total; ++i) second.push_back({labels[i], shares[i]});
  const TrainingLoss loss(training_options(job_with(c.train, c.augment)), set);
  const bool mixed = std::string_view(c.augment) != "[]";
  const auto losses = values_of<double>(std::string(c.name) + ".losses", "F64", {kSteps});
  const auto expected = values_of<double>(std::string(c.name) + ".final", "F64", {kClasses, kFeatures});
  LinearModel model(set.labels);
  std::size_t first = 0;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const auto size = static_cast<std::size_t>(sizes[step]);
    EXPECT_NEAR(model.step(loss, std::span(order).subspan(first, size), mixed ? &second[first] : nullptr),
                losses[step], 1e-6 * (1 + losses[step]))
        << "step " << step;
    first += size;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(model.weights()[i], expected[i], 2e-6) << i;
}

TEST(TrainingLossTest, FiftyStepsAreThoseOfPyTorch) {
  const Dataset set = set_of(values_of<std::int32_t>("labels", "I32", {kSamples}), kClasses);
  for (const LossCase& c : kCases) expect_fifty_steps_of_pytorch(c, set);
}

TEST(TrainingLossTest, FiftyStepsOfSeveralLabelsAreThoseOfPyTorch) {
  std::vector<std::int32_t> rows(kSamples);
  std::iota(rows.begin(), rows.end(), 0);
  Dataset set = set_of(rows, kClasses);
  set.label_sets = values_of<std::uint8_t>("label_sets", "U8", {kSamples, kClasses});
  expect_fifty_steps_of_pytorch({"several_labels", "loss: binary_cross_entropy"}, set);
}

TEST(TrainingLossTest, ScaleIsThatOfTheWholeBatch) {
  const Dataset set = set_of({0, 1, 1, 2}, 3);
  const TrainingLoss loss(training_options(job_with("class_weights: [0.5, 2, 0]")), set);
  const std::vector<std::int32_t> all = {0, 1, 2, 3}, weightless = {3};
  EXPECT_EQ(loss.scale_of(all), 4 / 4.5F);
  EXPECT_EQ(loss.scale_of(weightless), 0.0F);
  EXPECT_EQ(TrainingLoss(training_options(job_with("label_smoothing: 0.5")), set).scale_of(all), 1.0F);
  DistributedSampler sampler(
      {.samples = 4, .global_batch = 3, .grain = 1, .shuffle = false, .rank = 1, .world_size = 2});
  sampler.set_epoch(0);
  EXPECT_EQ(loss.scale_of(sampler, 0), 3 / 4.5F) << "whatever this rank's share is";
}

TEST(TrainingLossTest, BalancedWeightsAreOfTheTrainingSet) {
  const Dataset set = set_of({0, 1, 1, 1, 0, 1}, 2);
  const TrainingLoss loss(training_options(job_with("class_weights: balanced")), set);
  EXPECT_EQ(loss.rule().class_weights[0], 1.5F);
  EXPECT_EQ(loss.rule().class_weights[1], 0.75F);
  EXPECT_EQ(
      loss.describe(),
      "loss: cross_entropy, class weights (balanced) 1.5, 0.75; test and validation loss are without that");
}

TEST(TrainingLossTest, SaysNothingOfThePlainLossAndThatTestsAreWithoutTheRest) {
  const auto said = [](const std::string& train, const char* augment = "[]", std::size_t classes = 2) {
    return TrainingLoss(training_options(job_with(train, augment)), set_of({0, 1}, classes)).describe();
  };
  const std::string without = "; test and validation loss are without that";
  EXPECT_EQ(said("seed: 1"), "");
  EXPECT_EQ(said("loss: mse"), "loss: mse");
  EXPECT_EQ(said("label_smoothing: 0.1"), "loss: cross_entropy, label smoothing 0.1" + without);
  EXPECT_EQ(said("label_smoothing: 0.1", kMixup),
            "loss: cross_entropy, label smoothing 0.1, mixed labels" + without);
  std::string weights = "2";
  for (int number = 3; number <= 21; ++number) weights += ", " + std::to_string(number);
  EXPECT_EQ(said("class_weights: [" + weights + "]", "[]", 20),
            "loss: cross_entropy, class weights " + weights + without);
  EXPECT_EQ(said("class_weights: [" + weights + ", 0.5]", "[]", 21),
            "loss: cross_entropy, class weights from 0.5 to 21" + without);
}

TEST(TrainingLossTest, WeightsThatDoNotFitTheSetAreRefused) {
  const auto error_of = [](const char* train, const std::vector<std::int32_t>& labels) {
    const Job job = job_with(train);
    return message_of<ConfigError>(
        [&] { with_places(job, [&] { TrainingLoss(training_options(job), set_of(labels, 3)); }); });
  };
  EXPECT_EQ(error_of("class_weights: [1, 2]", {0, 1, 2}),
            "job.yaml:1:70: train.class_weights: 2 numbers for 3 classes; give one for each, in "
            "the order of "
            "the labels");
  EXPECT_EQ(error_of("class_weights: balanced", {0, 2, 2}),
            "job.yaml:1:70: train.class_weights: balanced, but no training sample is of class 1; give a list "
            "with a "
            "weight for each of the 3 classes");
}

TEST(TrainingLossTest, WhatIsForOneLabelASampleIsRefusedWhereTheyHaveSeveral) {
  Dataset set = set_of({0, 1}, 2);
  set.label_sets = {1, 0, 1, 1};
  const auto error_of = [&](const std::string& train, const std::string& data = "") {
    const Job job = parse_job(
        "{model: linear, data: {set: idx, root: here" + data + "}, train: {" + train + "}}", "job.yaml", {});
    return test::error_of<ConfigError>([&] { TrainingLoss(training_options(job), set); });
  };
  EXPECT_EQ(error_of("loss: binary_cross_entropy"), "");
  EXPECT_EQ(error_of("loss: mse"),
            "samples of ours train have several labels, and train.loss mse is for one; train with "
            "binary_cross_entropy");
  EXPECT_EQ(
      error_of("loss: binary_cross_entropy, label_smoothing: 0.1"),
      "train.label_smoothing: samples of ours train have several labels, and it is for one; leave it out");
  EXPECT_EQ(error_of("loss: binary_cross_entropy", ", balance_classes: true"),
            "data.balance_classes: samples of ours train have several labels, so no class has samples of its "
            "own; leave it out");
}

TEST(ArithmeticTest, JobsOfTwoSmoothedClassesHaveAVersionOfTheirOwn) {
  const auto version = [](const std::string& train, int classes) {
    return describe(arithmetic_of(parse_job("{model: net, train: {" + train + "}}", "job.yaml"), classes));
  };
  EXPECT_EQ(version("label_smoothing: 0.1", 2), "version 3");
  EXPECT_EQ(version("label_smoothing: 0.1", 10), "version 2");
  EXPECT_EQ(version("label_smoothing: 0.1, loss: binary_cross_entropy", 2), "version 2");
  EXPECT_EQ(version("class_weights: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", 2), "version 2");
  EXPECT_EQ(how_to_have(Arithmetic::kCanonical, Arithmetic::kSmoothedPair), "the version that made it");
}

}  // namespace
}  // namespace lockstep
