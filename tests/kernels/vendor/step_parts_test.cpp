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
  const auto expect_same = [&](int batch, const DeviceDataset& dataset, const SampleSelection& selection) {
    const auto run = [&](DeviceOps& ops) {
      const auto x = rig.poisoned<float>(std::size_t{1} * batch * dataset.features);
      const auto taken = rig.poisoned<std::int32_t>(static_cast<std::size_t>(batch));
      ops.gather(rig.stream(), batch, dataset, selection, x.data(), taken.data());
      return std::tuple(rig.download(x), rig.download(taken));
    };
    const auto [native, vendor] = run_both(rig, batch, run);
    EXPECT_EQ(native, vendor) << "batch " << batch << ", features " << dataset.features;
    return std::get<1>(vendor);
  };
  std::vector<std::uint8_t> images(std::size_t{9} * 35);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>(i * 37 % 256);
  const auto there = rig.upload(images);
  std::vector<std::int32_t> numbers(100);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto labels = rig.upload(numbers);
  const auto order = rig.upload(std::vector<std::int32_t>{8, 3, 1, 7, 0, 2, 6, 4, 5});
  const auto taken = expect_same(
      5, {.images = there.data(), .labels = labels.data(), .features = 35, .scale = 0.01F, .shift = -0.4F},
      {.order = order.data(), .first = 2});
  EXPECT_EQ(taken.front(), 1);
  for (const auto& [batch, features] : {std::pair{1, 35}, {17, 784}, {100, 35}, {33, 64}, {5, 1}}) {
    const auto set = rig.upload(random_floats(std::size_t{1} * batch * features, 3));
    expect_same(batch, {.features_fp32 = set.data(), .labels = labels.data(), .features = features}, {});
  }
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
    return std::tuple(rig.download(mean), rig.download(dx));
  };
  const auto [native, vendor] = run_both(rig, kBatch, run, x, dy);
  EXPECT_EQ(native, vendor);
}

TEST(VendorStepTest, LossEqualsNativeAndAgreesWithSoftmaxOfTheLibrary) {
  VendorRig rig;
  for (const auto& [batch, classes] : {std::pair{1, 3}, {5, 10}, {17, 10}, {64, 10}, {100, 37}}) {
    const LossShape shape{.batch = batch, .samples = batch, .classes = classes};
    const auto logits = random_floats(std::size_t{1} * batch * classes, 1);
    std::vector<std::int32_t> answers(static_cast<std::size_t>(batch));
    for (std::size_t n = 0; n < answers.size(); ++n)
      answers[n] = static_cast<std::int32_t>(n * 7 % static_cast<std::size_t>(classes));
    const auto labels = rig.upload(answers);
    std::vector<std::vector<std::int64_t>> counted;
    const auto run = [&](DeviceOps& ops, const std::vector<float>& input) {
      const auto counters = rig.zeroed<std::int64_t>(kStepCounters);
      const auto dlogits = rig.poisoned<float>(input.size());
      const LossTarget target{.labels = labels.data(), .counters = counters.data(), .narrow_limit = 1e6};
      ops.loss_and_gradient(rig.stream(), shape, rig.upload(input).data(), target, dlogits.data());
      counted.push_back(rig.download(counters));
      return std::tuple(rig.download(dlogits));
    };
    const auto [native, vendor] = run_both(rig, batch, run, logits);
    const std::string what = fmt::format("batch {}, {} classes", batch, classes);
    EXPECT_EQ(native, vendor) << what;
    EXPECT_EQ(counted[0], counted[1]) << what;

    const auto probabilities = rig.poisoned<float>(logits.size());
    rig.vendor().softmax_alone(rig.stream(), shape, rig.upload(to_samples(logits, batch)).data(),
                               probabilities.data());
    auto gradient = to_columns(rig.download(probabilities), batch);
    for (std::size_t n = 0; n < answers.size(); ++n)
      gradient[static_cast<std::size_t>(answers[n]) * answers.size() + n] -= 1;
    expect_agreement(std::get<0>(native), gradient, kVendorTolerance, what + ", softmax alone");
  }
}

struct EpilogueCase {
  ImageShape image;
  int batch;
  Epilogue epilogue;
};

TEST(VendorStepTest, EpilogueAloneEqualsNative) {
  constexpr EpilogueStep kRelu = {}, kMax = {EpilogueKind::kMaxPool}, kAvg = {EpilogueKind::kAvgPool};
  constexpr EpilogueStep kDropout2d = {EpilogueKind::kDropout, true, 4, 0.5F};
  constexpr EpilogueStep kDropout = {EpilogueKind::kDropout, false, 9, 0.25F};
  const EpilogueCase cases[] = {
      {{7, 9, 6}, 5, {}},
      {{3, 5, 7}, 17, {{kMax, kRelu}, 2, 2, 11, 64}},
      {{5, 4, 4}, 100, {{kDropout2d, kMax, kRelu}, 3, 2, 11, 64}},
      {{50, 1, 1}, 17, {{kRelu, kDropout}, 2, 1, 11, 64}},
      {{6, 5, 7}, 1, {{kRelu, kAvg}, 2, 2, 11, 64}},
      {{3, 5, 7}, 4, {{kDropout, kMax, kDropout, kRelu}, 4, 2, 11, 0}},
      {{2, 5, 7}, 3, {{kDropout}, 1, 1, 11, 0}},
  };
  VendorRig rig;
  for (const EpilogueCase& c : cases) {
    const auto x = random_floats(std::size_t{1} * c.image.features() * c.batch, 1);
    const auto dy = random_floats(size_after(c.epilogue, c.image, c.batch), 2);
    const auto run = [&](DeviceOps& ops, const std::vector<float>& input,
                         const std::vector<float>& gradient) {
      const EpilogueResult result =
          run_epilogue(rig, ops, c.image, c.batch, c.epilogue, {.scalars = {}, .step = 11}, input, gradient);
      return std::tuple(result.y, result.mask, result.dx);
    };
    const auto [native, vendor] = run_both(rig, c.batch, run, x, dy);
    EXPECT_EQ(native, vendor) << "batch " << c.batch << ", channels " << c.image.channels;
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
  const ExactSums sums(rig, shape, 65536);
  const auto queue = [&] {
    rig.vendor().conv2d_forward(rig.stream(), shape, x.data(), w.data(), b.data(), {}, nullptr, y.data(),
                                nullptr);
    rig.vendor().linear_forward(rig.stream(), linear, y.data(), v.data(), b.data(), {}, nullptr, z.data(),
                                nullptr);
    rig.vendor().conv2d_backward_weights(rig.stream(), shape, 4, x.data(), y.data(), sums.gradient);
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
