// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// 100 steps of training Net, each loss against PyTorch's: tests/golden/make_golden.py made the
/// file.
#include "common/safetensors.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/sums.hpp"
#include "kernels/optimizers/rule_steps.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "models/execution.hpp"
#include "models/network.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep {
namespace {

constexpr int kSamples = 512, kBatch = 64, kSteps = 100, kFeatures = 784, kClasses = 10;
constexpr int kTaken = test::effort(kSteps, 20);
constexpr float kMean = 0.1307F, kStd = 0.3081F;

// models/net.yaml without dropout, which would draw other masks than PyTorch.
constexpr char kNet[] = R"(
layers:
  - conv2d: {name: conv1, out: 10, kernel: 5}
  - max_pool: 2
  - relu
  - conv2d: {name: conv2, out: 20, kernel: 5}
  - max_pool: 2
  - relu
  - linear: {name: fc1, out: 50}
  - relu
  - linear: {name: fc2, out: classes}
)";

std::string golden_path() {
  return test::source_path("tests/golden/net_100_steps.safetensors");
}

class GoldenTrainingTest : public ::testing::Test {
 protected:
  GoldenTrainingTest()
      : file_(test::read_safetensors(golden_path())),
        images_(test::values_of<std::uint8_t>(file_, "images", "U8", {kSamples, kFeatures})),
        labels_(test::values_of<std::uint8_t>(file_, "labels", "U8", {kSamples})),
        order_(test::values_of<std::int16_t>(file_, "order", "I16", {kSteps, kBatch})),
        losses_(test::values_of<float>(file_, "losses", "F32", {kSteps})),
        network_(Network::parse(kNet, "net", {1, 28, 28}, kClasses)),
        execution_(network_, kBatch),
        weights_(read_weights("initial.")),
        gradient_(weights_.size()),
        momentum_(weights_.size()) {}

  std::vector<float> read_weights(const std::string& prefix) const {
    return test::weights_of<float>(file_, network_.parameters().parameters, prefix, "F32");
  }

  /// Runs samples [first, first + count) of a step's batch; gradient_ gets the sums. Returns the loss sum.
  double run_grain(int step, int first, int count) {
    std::vector<const std::uint8_t*> images;
    std::vector<std::int32_t> labels;
    for (int i = first; i < first + count; ++i) {
      const auto sample = static_cast<std::size_t>(order_[static_cast<std::size_t>(step * kBatch + i)]);
      images.push_back(images_.data() + sample * kFeatures);
      labels.push_back(labels_[sample]);
    }
    const float scale = 1 / (255 * kStd), shift = -kMean / kStd;
    cpu::gather_images({count, count, kFeatures}, images.data(), &scale, &shift, execution_.input());
    const PassKey key{1, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(first)};
    float* logits = execution_.forward_training(weights_.data(), count, key);
    LossSums sums;
    cpu::loss_and_gradient({count, count, kClasses}, logits, labels.data(), logits, &sums);
    execution_.backward(logits, gradient_.data(), {});
    return sums.loss;
  }

  void update() {
    const UpdateTensor all{.size = weights_.size()};
    float* const momentum = momentum_.data();
    cpu::update(UpdateRule::kSgdMomentum, pack_scalars(SgdStep{.rate = 0.01F, .momentum = 0.5F}), {&all, 1},
                gradient_.data(), &momentum, weights_.data());
  }

  void expect_loss(int step, double loss_sum) const {
    const double expected = losses_[static_cast<std::size_t>(step)];
    EXPECT_NEAR(loss_sum / kBatch, expected, 1e-4 * expected) << "step " << step;
  }

  void expect_final_weights() const {
    const std::vector<float> expected = read_weights("final.");
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(weights_[i], expected[i], 1e-4) << "weight " << i;
  }

  /// Grains are summed exactly.
  void train(int grain) {
    std::vector<std::int64_t> sum(weights_.size());
    for (int step = 0; step < kTaken; ++step) {
      std::fill(sum.begin(), sum.end(), 0);
      double loss = 0;
      for (int first = 0; first < kBatch; first += grain) {
        loss += run_grain(step, first, grain);
        ASSERT_TRUE(
            cpu::accumulate_exact(sum.size(), gradient_.data(), exact_format(kBatch / grain), sum.data()));
      }
      expect_loss(step, loss);
      cpu::mean_from_exact(sum.size(), sum.data(), kExactScale, kBatch, gradient_.data());
      update();
    }
    if (kTaken == kSteps) expect_final_weights();
  }

  SafetensorsFile file_;
  std::vector<std::uint8_t> images_, labels_;
  std::vector<std::int16_t> order_;
  std::vector<float> losses_;
  Network network_;
  Execution execution_;
  std::vector<float> weights_, gradient_, momentum_;
};

TEST_F(GoldenTrainingTest, WholeBatchesTrainAsPytorchDoes) {
  train(kBatch);
}

TEST_F(GoldenTrainingTest, GrainsOf16TrainAsPytorchDoes) {
  train(16);
}

}  // namespace
}  // namespace lockstep
