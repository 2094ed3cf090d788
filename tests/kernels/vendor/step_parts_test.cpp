// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Parts of a step around the layers, and the step as a graph.
#include "kernels/numerics/sums.hpp"
#include "kernels/shapes.hpp"
#include "tests/kernels/vendor/vendor_rig.hpp"

namespace lockstep::test {
namespace {

TEST(VendorStepTest, GatherTakesTheSameSamples) {
  VendorRig rig;
  std::vector<std::uint8_t> images(std::size_t{9} * 35);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>(i * 37 % 256);
  const auto there = rig.upload(images);
  const auto labels = rig.upload(std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  const auto order = rig.upload(std::vector<std::int32_t>{8, 3, 1, 7, 0, 2, 6, 4, 5});
  const DeviceDataset dataset{
      .images = there.data(), .labels = labels.data(), .features = 35, .scale = 0.01F, .shift = -0.4F};
  const SampleSelection selection{.order = order.data(), .first = 2};
  const auto run = [&](DeviceOps& ops) {
    const auto x = rig.poisoned<float>(std::size_t{5} * 35);
    const auto taken = rig.poisoned<std::int32_t>(5);
    ops.gather(rig.stream(), 5, dataset, selection, x.data(), taken.data());
    return std::pair(rig.download(x), rig.download(taken));
  };
  const auto native = run(rig.native()), vendor = run(rig.vendor());
  EXPECT_EQ(native.first, to_columns(vendor.first, 5));
  EXPECT_EQ(native.second, vendor.second);
  EXPECT_EQ(vendor.second.front(), 1);
}

TEST(VendorStepTest, NumberByNumberOpsAreTheNativeOnesInAnyLayout) {
  VendorRig rig;
  constexpr int kBatch = 5;
  const ImageShape image{3, 4, 2};
  const auto x = random_floats(std::size_t{24} * kBatch, 1), dy = random_floats(std::size_t{3} * kBatch, 2);
  const auto run = [&](DeviceOps& ops, const std::vector<float>& input, const std::vector<float>& gradient) {
    const auto from = rig.upload(input), back = rig.upload(gradient);
    const auto y = rig.poisoned<float>(input.size()), slope = rig.poisoned<float>(input.size());
    const auto mean = rig.poisoned<float>(gradient.size()), dx = rig.poisoned<float>(input.size());
    ops.activation_forward(rig.stream(), Activation::kTanh, input.size(), from.data(), y.data());
    ops.activation_backward(rig.stream(), Activation::kTanh, input.size(), y.data(), from.data(),
                            slope.data());
    ops.add(rig.stream(), input.size(), y.data(), slope.data(), y.data());
    ops.global_avg_pool_forward(rig.stream(), image, kBatch, y.data(), mean.data());
    ops.global_avg_pool_backward(rig.stream(), image, kBatch, back.data(), dx.data());
    return std::pair(rig.download(mean), rig.download(dx));
  };
  const auto native = run(rig.native(), x, dy);
  const auto vendor = run(rig.vendor(), to_samples(x, kBatch), to_samples(dy, kBatch));
  EXPECT_EQ(native.first, to_columns(vendor.first, kBatch));
  EXPECT_EQ(native.second, to_columns(vendor.second, kBatch));
}

TEST(VendorStepTest, LossAgreesWithNativeAndSoftmaxOfTheLibrary) {
  VendorRig rig;
  for (const int batch : batches_under_test()) {
    const LossShape shape{.batch = batch, .samples = batch, .classes = 10};
    const auto logits = random_floats(std::size_t{10} * static_cast<std::size_t>(batch), 1);
    std::vector<std::int32_t> answers(static_cast<std::size_t>(batch));
    for (std::size_t n = 0; n < answers.size(); ++n) answers[n] = static_cast<std::int32_t>(n * 7 % 10);
    const auto labels = rig.upload(answers);
    const auto run = [&](DeviceOps& ops, const std::vector<float>& input) {
      const auto counters = rig.zeroed<std::int64_t>(kStepCounters);
      const auto dlogits = rig.poisoned<float>(logits.size());
      const LossTarget target{.labels = labels.data(), .counters = counters.data(), .narrow_limit = 1e6};
      ops.loss_and_gradient(rig.stream(), shape, rig.upload(input).data(), target, dlogits.data());
      return std::pair(rig.download(dlogits), rig.download(counters));
    };
    const auto native = run(rig.native(), logits);
    const auto vendor = run(rig.vendor(), to_samples(logits, batch));
    const std::string what = "batch " + std::to_string(batch) + ", seed 1";
    expect_agreement(native.first, to_columns(vendor.first, batch), kVendorTolerance, what);
    EXPECT_EQ(native.second[kSamples], vendor.second[kSamples]) << what;
    EXPECT_EQ(native.second[kCorrect], vendor.second[kCorrect]) << what;
    EXPECT_NEAR(static_cast<double>(native.second[kLoss]) / static_cast<double>(vendor.second[kLoss]), 1,
                1e-6)
        << what;

    const auto probabilities = rig.poisoned<float>(logits.size());
    rig.vendor().softmax_alone(rig.stream(), shape, rig.upload(to_samples(logits, batch)).data(),
                               probabilities.data());
    auto gradient = rig.download(probabilities);
    for (std::size_t n = 0; n < answers.size(); ++n)
      gradient[n * 10 + static_cast<std::size_t>(answers[n])] -= 1;
    expect_agreement(vendor.first, gradient, kVendorTolerance, what + ", softmax alone");
  }
}

TEST(VendorStepTest, EpilogueAloneEqualsNative) {
  VendorRig rig;
  const ImageShape image{7, 9, 6};
  const auto x = random_floats(std::size_t{7} * 9 * 6 * 5, 1);
  const auto state = rig.upload(std::vector<StepState>{{.scalars = {}, .step = 11}});
  for (const Epilogue& epilogue : epilogues_under_test(true)) {
    const std::size_t size = std::size_t{7} * 5 * static_cast<std::size_t>(epilogue.out(9) * epilogue.out(6));
    const auto run = [&](DeviceOps& ops, const std::vector<float>& input) {
      const auto y = rig.poisoned<float>(size), dx = rig.poisoned<float>(x.size());
      const auto mask = rig.poisoned<std::uint8_t>(size);
      ops.epilogue_forward(rig.stream(), image, 5, rig.upload(input).data(), epilogue, state.data(), y.data(),
                           mask.data());
      const EpilogueBackward expand{7, 9, 6, epilogue.pool, epilogue.factors(), mask.data()};
      ops.epilogue_backward(rig.stream(), expand, 5, y.data(), dx.data());
      return std::pair(rig.download(y), rig.download(dx));
    };
    const auto native = run(rig.native(), x), vendor = run(rig.vendor(), to_samples(x, 5));
    EXPECT_EQ(native.first, to_columns(vendor.first, 5));
    EXPECT_EQ(native.second, to_columns(vendor.second, 5));
  }
}

TEST(VendorStepTest, CapturedOpsGiveTheSameBits) {
  VendorRig rig;
  const Conv2dShape shape{6, 2, 6, 6, 3, 3, 3};
  const LinearShape linear{6, 48, 5};
  const auto x = rig.upload(random_floats(shape.in_size(), 1));
  const auto w = rig.upload(random_floats(shape.weight_size(), 2));
  const auto b = rig.upload(random_floats(8, 3));
  const auto v = rig.upload(random_floats(linear.weight_size(), 4));
  const auto y = rig.poisoned<float>(shape.out_size()), z = rig.poisoned<float>(30);
  ExactSums sums(rig, shape.weight_size(), 3);
  const auto queue = [&] {
    rig.vendor().conv2d_forward(rig.stream(), shape, x.data(), w.data(), b.data(), {}, nullptr, y.data(),
                                nullptr);
    rig.vendor().linear_forward(rig.stream(), linear, y.data(), v.data(), b.data(), {}, nullptr, z.data(),
                                nullptr);
    rig.vendor().conv2d_backward_weights(rig.stream(), shape, 4, x.data(), y.data(), sums.target());
  };
  queue();
  const auto direct_z = rig.download(z);
  auto expected = sums.dw();

  rig.stream().begin_capture();
  queue();
  const auto graph = rig.stream().end_capture();
  rig.stream().fill_zero(z.data(), z.bytes());
  rig.stream().launch(*graph);
  EXPECT_EQ(rig.download(z), direct_z);
  for (auto& sum : expected) sum *= 2;
  EXPECT_EQ(sums.dw(), expected) << "added once directly and once by the graph";
}

/// A convolution with its epilogue, run directly and captured.
class CapturedConv2d {
 public:
  CapturedConv2d(VendorRig& rig, const Conv2dShape& shape)
      : rig_(rig),
        x_(rig.upload(random_floats(shape.in_size(), 1))),
        w_(rig.upload(random_floats(shape.weight_size(), 2))),
        b_(rig.upload(random_floats(static_cast<std::size_t>(shape.out_channels), 3))),
        y_(rig.poisoned<float>(shape.out_size())) {
    queue(shape);
    direct_ = rig.download(y_);
    rig.stream().begin_capture();
    queue(shape);
    graph_ = rig.stream().end_capture();
  }

  const std::vector<float>& direct() const { return direct_; }
  std::vector<float> replayed() {
    rig_.stream().fill_zero(y_.data(), y_.bytes());
    rig_.stream().launch(*graph_);
    return rig_.download(y_);
  }

 private:
  void queue(const Conv2dShape& shape) {
    const Epilogue relu = epilogues_under_test(false)[1];
    rig_.vendor().conv2d_forward(rig_.stream(), shape, x_.data(), w_.data(), b_.data(), relu, nullptr,
                                 y_.data(), nullptr);
  }

  VendorRig& rig_;
  DeviceBuffer<float> x_, w_, b_, y_;
  std::vector<float> direct_;
  std::unique_ptr<Graph> graph_;
};

/// A graph keeps the addresses of the scratch memory it was captured with.
TEST(VendorStepTest, GraphsOfAnEarlierShapeSurviveALargerOne) {
  VendorRig rig;
  CapturedConv2d small(rig, {2, 1, 5, 5, 2, 3, 3});
  CapturedConv2d large(rig, {9, 3, 12, 12, 8, 3, 3});
  EXPECT_EQ(small.replayed(), small.direct());
  EXPECT_EQ(large.replayed(), large.direct());
}

}  // namespace
}  // namespace lockstep::test
