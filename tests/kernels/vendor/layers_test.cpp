// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions and fully connected layers of vendor ops beside the native ones.
#include "kernels/numerics/sums.hpp"
#include "tests/kernels/vendor/vendor_rig.hpp"

namespace lockstep::test::layers_test {
namespace {

using reference::input_size, reference::output_size, reference::outputs_of;

struct Convolution : OpsOf<Conv2dShape> {
  /// Those of Net and LeNet, then odd ones.
  static std::vector<Conv2dShape> shapes(int batch) {
    return {{batch, 1, 28, 28, 10, 5, 5},       {batch, 10, 12, 12, 20, 5, 5},
            {batch, 1, 28, 28, 20, 3, 3},       {batch, 20, 13, 13, 50, 5, 5},
            {batch, 3, 5, 7, 4, 3, 3, 1, 1},    {batch, 2, 9, 8, 3, 2, 4},
            {batch, 1, 5, 7, 1, 5, 7},          {batch, 5, 11, 6, 7, 3, 2, 2, 1},
            {batch, 7, 1, 1, 3, 1, 1},          {batch, 3, 16, 16, 9, 5, 5, 3, 2},
            {batch, 6, 7, 8, 4, 3, 3, 1, 1, 2}, {batch, 3, 11, 9, 2, 3, 3, 2, 1, 1, 2}};
  }
  static Conv2dShape one_of_net(int batch) { return {batch, 10, 12, 12, 20, 5, 5}; }
  /// In front of that one.
  static constexpr EpilogueBackward kExpand{
      .channels = 10, .height = 25, .width = 24, .pool = 2, .factors = {0.5F}};

  // Calls alone: Winograd and FFT are allowed here, which round more.
  static constexpr auto kForwardAlone = &VendorOps::conv2d_forward_alone;
  static constexpr auto kBackwardWeightsAlone = &VendorOps::conv2d_backward_weights_alone;
  static constexpr double kToleranceAlone = 1e-4;
};

struct FullyConnected : OpsOf<LinearShape> {
  /// Those of Net, LeNet and the perceptron, then odd ones.
  static std::vector<LinearShape> shapes(int batch) {
    return {{batch, 320, 50}, {batch, 50, 10}, {batch, 1250, 128}, {batch, 128, 10},
            {batch, 784, 32}, {batch, 1, 1},   {batch, 3, 65},     {batch, 131, 7}};
  }
  static LinearShape one_of_net(int batch) { return {batch, 320, 50}; }
  static constexpr EpilogueBackward kExpand{
      .channels = 20, .height = 8, .width = 9, .pool = 2, .factors = {2}};

  static constexpr auto kForwardAlone = &VendorOps::linear_forward_alone;
  static constexpr auto kBackwardWeightsAlone = &VendorOps::linear_backward_weights_alone;
  static constexpr double kToleranceAlone = kVendorTolerance;
};

/// Exact sums of a layer's gradient.
template <class Layer, class Shape>
ExactSums weight_gradient(VendorRig& rig, DeviceOps& ops, const Shape& shape, int grain,
                          const std::vector<float>& x, const std::vector<float>& dy, float limit = 65536) {
  ExactSums sums(rig, shape, limit);
  std::invoke(Layer::kBackwardWeights, ops, rig.stream(), shape, grain, rig.upload(x).data(),
              rig.upload(dy).data(), sums.gradient);
  rig.stream().synchronize();
  return sums;
}

template <class Layer>
class VendorLayerTest : public testing::Test {};
using Layers = testing::Types<Convolution, FullyConnected>;
TYPED_TEST_SUITE(VendorLayerTest, Layers);

TYPED_TEST(VendorLayerTest, ForwardWithEpilogueAgreesWithNative) {
  VendorRig rig;
  const auto state = rig.upload(std::vector<StepState>{{.scalars = {}, .step = 11}});
  for_each_shape(TypeParam::shapes, [&](const auto& shape) {
    const auto x = random_floats(input_size(shape), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto b = rig.upload(random_floats(outputs_of(shape), 3));
    const ImageShape image = output_image(shape);
    int number = 0;
    for (const Epilogue& epilogue : epilogues_under_test(image.height > 1 && image.width > 1)) {
      const std::string what = "epilogue " + std::to_string(number++);
      for (const bool has_mask : {true, false}) {
        if (!has_mask && epilogue.count > 0) continue;
        const auto run = [&](DeviceOps& ops, const std::vector<float>& input) {
          const auto y = rig.poisoned<float>(size_after(epilogue, image, shape.batch));
          const auto mask = rig.poisoned<std::uint8_t>(y.size());
          std::invoke(TypeParam::kForward, ops, rig.stream(), shape, rig.upload(input).data(), w.data(),
                      b.data(), epilogue, state.data(), y.data(), has_mask ? mask.data() : nullptr);
          return std::tuple(rig.download(y), rig.download(mask));
        };
        const auto [native, vendor] = run_both(rig, shape.batch, run, x);
        expect_agreement(std::get<0>(native), std::get<0>(vendor), kVendorTolerance, what);
        const auto &masks = std::get<1>(native), &vendor_masks = std::get<1>(vendor);
        std::size_t different = 0;
        for (std::size_t i = 0; i < masks.size(); ++i) different += masks[i] != vendor_masks[i];
        EXPECT_LE(different, masks.size() / 10000) << what << ": more than ties within rounding";
      }
    }
  });
}

/// Also through the epilogue before it, of a layer of Net.
TYPED_TEST(VendorLayerTest, DataGradientAgreesWithNative) {
  VendorRig rig;
  const auto check = [&](const auto& shape, EpilogueBackward* expand) {
    const auto dy = random_floats(output_size(shape), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto masks = random_masks(input_size(shape), 2, 3);
    const auto size = expand == nullptr
                          ? input_size(shape)
                          : std::size_t{1} * expand->channels * expand->height * expand->width * shape.batch;
    const auto run = [&](DeviceOps& ops, const std::vector<float>& gradient,
                         const std::vector<std::uint8_t>& mask) {
      const auto mask_there = rig.upload(mask);
      if (expand != nullptr) expand->mask = mask_there.data();
      const auto dx = rig.poisoned<float>(size);
      TypeParam::backward_data(ops, rig.stream(), shape, rig.upload(gradient).data(), w.data(), expand,
                               dx.data());
      return std::tuple(rig.download(dx));
    };
    const auto [native, vendor] = run_both(rig, shape.batch, run, dy, masks);
    expect_agreement(std::get<0>(native), std::get<0>(vendor), kVendorTolerance,
                     expand == nullptr ? "data gradient" : "expanded data gradient");
  };
  for_each_shape(TypeParam::shapes, [&](const auto& shape) { check(shape, nullptr); });
  for (const int batch : batches_under_test()) {
    EpilogueBackward expand = TypeParam::kExpand;
    check(TypeParam::one_of_net(batch), &expand);
  }
}

TYPED_TEST(VendorLayerTest, WeightGradientAgreesWithNativeForEveryGrain) {
  VendorRig rig;
  for_each_shape(TypeParam::shapes, [&](const auto& shape) {
    const auto x = random_floats(input_size(shape), 1), dy = random_floats(output_size(shape), 4);
    for (const int grain : {2, 3, 64}) {
      const auto native = weight_gradient<TypeParam>(rig, rig.native(), shape, grain, x, dy);
      const auto vendor = weight_gradient<TypeParam>(rig, rig.vendor(), shape, grain,
                                                     to_samples(x, shape.batch), to_samples(dy, shape.batch));
      expect_agreement(native, vendor, "grain " + std::to_string(grain));
    }
  });
}

TYPED_TEST(VendorLayerTest, CallsAloneAgreeWithNative) {
  VendorRig rig;
  const auto fastest = vendor_ops_under_test(rig.device(), VendorAlgorithms::kFastest);
  const auto shape = TypeParam::one_of_net(batches_under_test().back());
  const auto x = random_floats(input_size(shape), 1), dy = random_floats(output_size(shape), 4);
  const auto w = rig.upload(random_floats(shape.weight_size(), 2));
  const auto no_bias = rig.zeroed<float>(outputs_of(shape));
  const auto y = rig.poisoned<float>(output_size(shape)), vendor_y = rig.poisoned<float>(y.size());
  const auto vendor_dw = rig.poisoned<float>(shape.weight_size());
  const auto there = rig.upload(x), vendor_there = rig.upload(to_samples(x, shape.batch));
  const auto vendor_dy = rig.upload(to_samples(dy, shape.batch));
  std::invoke(TypeParam::kForward, rig.native(), rig.stream(), shape, there.data(), w.data(), no_bias.data(),
              Epilogue{}, nullptr, y.data(), nullptr);
  std::invoke(TypeParam::kForwardAlone, *fastest, rig.stream(), shape, vendor_there.data(), w.data(),
              vendor_y.data());
  expect_agreement(rig.download(y), to_columns(rig.download(vendor_y), shape.batch),
                   TypeParam::kToleranceAlone, "forward alone");

  const auto native = weight_gradient<TypeParam>(rig, rig.native(), shape, shape.batch, x, dy);
  std::invoke(TypeParam::kBackwardWeightsAlone, *fastest, rig.stream(), shape, vendor_there.data(),
              vendor_dy.data(), vendor_dw.data());
  std::vector<float> dw;
  for (const std::int64_t sum : native.dw()) dw.push_back(static_cast<float>(from_exact(sum)));
  expect_agreement(dw, rig.download(vendor_dw), TypeParam::kToleranceAlone, "weight gradient alone");
}

TEST(VendorLinearTest, TermsThatAnExactSumCannotTakeAreRefused) {
  VendorRig rig;
  const LinearShape shape{4, 3, 2};
  const std::vector<float> x(12, 10.0F), dy = {1, 0.01F, 1, 0.01F, 1, 0.01F, 1, 0.01F};
  const auto sums = weight_gradient<FullyConnected>(rig, rig.vendor(), shape, 2, x, dy, 5);
  EXPECT_EQ(sums.refused(), 6) << "three weights of the first output, in two grains";
  EXPECT_EQ(sums.dw()[0], 0);
  EXPECT_NEAR(from_exact(sums.dw()[3]), 0.4, 1e-6);
  EXPECT_NEAR(from_exact(sums.db()[0]), 4, 1e-6);
}

/// A copy of a bias would be another launch.
TEST(VendorConv2dTest, NeitherWeightsNorBiasesNeedAlignment) {
  VendorRig rig;
  for (const int size : {6, 5}) {  // outputs of 16 pixels and of 9
    const Conv2dShape shape{3, 2, size, size, 4, 3, 3};
    const auto x = rig.upload(random_floats(shape.in_size(), 1));
    const auto numbers = random_floats(shape.weight_size() + 1, 2), biases = random_floats(5, 3);
    const auto w = rig.upload(numbers), b = rig.upload(biases);
    const auto straight_w = rig.upload(std::vector<float>(numbers.begin() + 1, numbers.end()));
    const auto straight_b = rig.upload(std::vector<float>(biases.begin() + 1, biases.end()));
    const auto y = rig.poisoned<float>(shape.out_size());
    const auto queue = [&](const float* weights, const float* bias) {
      rig.vendor().conv2d_forward(rig.stream(), shape, x.data(), weights, bias, {}, nullptr, y.data(),
                                  nullptr);
    };
    const auto run = [&](const float* weights, const float* bias) {
      queue(weights, bias);
      return rig.download(y);
    };
    const auto launches = [&](const float* bias) {
      rig.stream().begin_capture();
      queue(straight_w.data(), bias);
      return rig.stream().end_capture()->nodes();
    };
    const auto expected = run(straight_w.data(), straight_b.data());
    EXPECT_EQ(run(w.data() + 1, straight_b.data()), expected);
    EXPECT_EQ(run(straight_w.data(), b.data() + 1), expected);
    EXPECT_EQ(launches(b.data() + 1), launches(straight_b.data()));
  }
}

}  // namespace
}  // namespace lockstep::test::layers_test
