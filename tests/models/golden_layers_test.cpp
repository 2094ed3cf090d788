// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// 100 steps of networks with branches and curves, of networks for pictures, and of transposed convolutions.
/// They run on the CPU and on a device, against PyTorch in double: tests/golden/make_golden.py made the
/// files.
#include "common/safetensors.hpp"
#include "kernels/cpu/ops.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::test {
namespace {

constexpr int kBatch = 16, kSamples = 64, kSteps = 100, kClasses = 4;
constexpr double kMomentum = 0.5;

/// Network to train, and the file of tests/golden with the results.
struct GoldenNetwork {
  const char *name, *file;
  ImageShape image;
  const char* yaml;
  double learning_rate = 0.05;
};

constexpr GoldenNetwork kNetworks[] = {{"layers", "tests/golden/layers.safetensors", {2, 6, 7}, R"(
layers:
  - conv2d: {out: 5, kernel: 3, padding: 1}
  - tanh: {name: start}
  - conv2d: {out: 5, kernel: 3, padding: 1}
  - gelu
  - add: start
  - sigmoid
  - conv2d: {out: 5, kernel: 3, padding: 1}
  - gelu: {approximate: tanh}
  - add: {from: start}
  - global_avg_pool
  - linear: 9
  - tanh
  - linear: classes
)"},
                                       {"pictures", "tests/golden/pictures.safetensors", {2, 13, 11}, R"(
layers:
  - conv2d: {out: 6, kernel: 7, stride: 2, padding: 3}
  - tanh
  - max_pool: {kernel: 3, stride: 2, padding: 1}
  - conv2d: {out: 9, kernel: 3, padding: 2, dilation: 2, groups: 3}
  - relu6: {name: start}
  - conv2d: {out: 9, kernel: 3, padding: 1, groups: 9}
  - tanh
  - conv2d: {out: 9, kernel: 1}
  - add: start
  - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}
  - tanh
  - global_avg_pool
  - linear: classes
)"},
                                       {"modern_layers",
                                        "tests/golden/modern_layers.safetensors",
                                        {2, 6, 7},
                                        R"(
layers:
  - conv2d: {out: 6, kernel: 3, padding: 1}
  - group_norm: 3
  - silu: {name: body}
  - global_avg_pool
  - linear: 4
  - elu: 0.7
  - linear: 6
  - hardsigmoid
  - multiply: body
  - conv2d: {out: 4, kernel: 3, padding: 1}
  - leaky_relu: {slope: 0.1, name: narrow}
  - conv2d: {out: 4, kernel: 3, padding: 1}
  - hardswish
  - concat: narrow
  - adaptive_avg_pool: 4
  - layer_norm: {eps: 1e-4}
  - linear: classes
)",
                                        0.01},
                                       {"transposed", "tests/golden/transposed.safetensors", {2, 9, 8}, R"(
layers:
  - conv2d: {out: 6, kernel: 3, stride: 2}
  - tanh
  - conv_transpose2d: {out: 8, kernel: 3, stride: 2, padding: 1, output_padding: 1, groups: 2}
  - silu
  - conv_transpose2d: {out: 4, kernel: [2, 3], dilation: 2, bias: false}
  - tanh
  - conv_transpose2d: {out: 3, kernel: 3, padding: 1}
  - tanh
  - linear: classes
)"}};

/// Results of a pass over one batch.
struct Sums {
  double loss = 0;
  std::vector<double> gradients;  ///< arena order
};

class GoldenLayersTest : public testing::TestWithParam<GoldenNetwork> {
 protected:
  GoldenLayersTest()
      : image_(GetParam().image),
        file_(test::read_safetensors(test::source_path(GetParam().file))),
        network_(Network::parse(GetParam().yaml, GetParam().name, image_, kClasses)),
        images_(
            values<float>("images", "F32",
                          {kSamples, static_cast<std::size_t>(image_.channels),
                           static_cast<std::size_t>(image_.height), static_cast<std::size_t>(image_.width)})),
        labels_(values<std::int32_t>("labels", "I32", {kSamples})),
        losses_(values<double>("losses", "F64", {kSteps})),
        weights_(weights<float>("initial.", "F32")),
        momentum_(weights_.size()) {}

  template <typename T>
  std::vector<T> values(const std::string& name, const char* type,
                        const std::vector<std::size_t>& shape) const {
    return test::values_of<T>(file_, name, type, shape);
  }

  template <typename T>
  std::vector<T> weights(const std::string& prefix, const char* type) const {
    return test::weights_of<T>(file_, network_.parameters().parameters, prefix, type);
  }

  /// Columns of the batch, [features][batch].
  std::vector<float> columns(int first) const {
    std::vector<float> x(static_cast<std::size_t>(image_.features() * kBatch));
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = images_[(static_cast<std::size_t>(first) + i % kBatch) *
                         static_cast<std::size_t>(image_.features()) +
                     i / kBatch];
    return x;
  }

  /// SGD in double on the fp32 weights' copy, so that only the gradients are tried.
  void update(const std::vector<double>& gradients) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      momentum_[i] = kMomentum * momentum_[i] + gradients[i] / kBatch;
      weights_[i] = static_cast<float>(weights_[i] - GetParam().learning_rate * momentum_[i]);
    }
  }

  /// Relative to the largest weight of all.
  void expect_weights(const std::string& prefix, double tolerance) const {
    const std::vector<double> expected = weights<double>(prefix, "F64");
    double largest = 0;
    for (const double weight : expected) largest = std::max(largest, std::abs(weight));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(weights_[i], expected[i], tolerance * largest) << prefix << " weight " << i;
  }

  /// @param pass  Sums of (first sample)
  template <typename Pass>
  void train(const Pass& pass) {
    constexpr int kTaken = effort(kSteps, 10);
    for (int step = 0; step < kTaken; ++step) {
      const Sums sums = pass(step * kBatch % kSamples);
      const double loss = losses_[static_cast<std::size_t>(step)];
      ASSERT_NEAR(sums.loss / kBatch, loss, (step == 0 ? 1e-6 : 1e-5) * std::max(loss, 1.0))
          << "step " << step;
      update(sums.gradients);
      if (step == 0) expect_weights("once.", 1e-6);
    }
    if (kTaken == kSteps) expect_weights("final.", 1e-5);
  }

  ImageShape image_;
  SafetensorsFile file_;
  Network network_;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  std::vector<double> losses_;
  std::vector<float> weights_;
  std::vector<double> momentum_;
};

TEST_P(GoldenLayersTest, CpuTrainsAsPytorchDoes) {
  Execution execution(network_, kBatch);
  std::vector<float> gradients(weights_.size());
  train([&](int first) {
    std::ranges::copy(columns(first), execution.input());
    float* logits = execution.forward_training(weights_.data(), kBatch, {});
    LossSums sums;
    cpu::loss_and_gradient({kBatch, kBatch, kClasses}, logits, labels_.data() + first, logits, &sums);
    execution.backward(logits, gradients.data(), {});
    return Sums{sums.loss, {gradients.begin(), gradients.end()}};
  });
}

TEST_P(GoldenLayersTest, DeviceTrainsAsPytorchDoes) {
  DeviceRig rig;
  DeviceExecution execution(network_, rig.device(), rig.ops(), kBatch, DeviceExecution::Purpose::kTraining);
  const auto side = rig.device().make_stream();
  const std::vector<ExactFormat> formats(network_.parameters().parameters.size(), {.limit = 1e4F});
  train([&](int first) {
    const auto weights = rig.upload(weights_);
    const auto sums = rig.zeroed<std::int64_t>(kCounterSlots + weights_.size());
    const std::vector<float> x = columns(first);
    rig.stream().copy_to_device(execution.input(), x.data(), x.size() * sizeof(float));
    rig.stream().copy_to_device(execution.labels(), labels_.data() + first, kBatch * sizeof(std::int32_t));
    const DevicePass pass{.batch = kBatch};
    float* logits = execution.forward_training(rig.stream(), weights.data(), pass);
    rig.ops().loss_and_gradient(rig.stream(), {kBatch, kBatch, kClasses}, logits,
                                {execution.labels(), sums.data(), 1e6, nullptr}, logits);
    execution.backward(rig.stream(), *side, logits,
                       {kBatch, sums.data() + kCounterSlots, sums.data() + kRefused, formats},
                       [](Stream&, std::size_t, std::size_t) {});
    const auto totals = rig.download(sums);
    Sums result{static_cast<double>(totals[kLoss]) / kLossScale, {}};
    for (std::size_t i = 0; i < weights_.size(); ++i)
      result.gradients.push_back(from_exact(totals[kCounterSlots + i]));
    return result;
  });
}

INSTANTIATE_TEST_SUITE_P(Networks, GoldenLayersTest, testing::ValuesIn(kNetworks),
                         [](const auto& network) { return std::string(network.param.name); });

}  // namespace
}  // namespace lockstep::test
