// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions and fully connected layers of vendor ops beside the native ones.
#include "kernels/numerics/sums.hpp"
#include "tests/kernels/vendor/vendor_rig.hpp"

#include <functional>

namespace lockstep::test::layers_test {
namespace {

using reference::input_size, reference::output_size, reference::outputs_of;

struct Convolution {
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
      .channels = 10, .height = 25, .width = 24, .pool = 2, .factors = 0.5F};

  static std::vector<Epilogue> epilogues(const Conv2dShape& s) {
    return epilogues_under_test(s.out_height() > 1 && s.out_width() > 1);
  }
  static std::size_t size_after(const Epilogue& epilogue, const Conv2dShape& s) {
    return std::size_t{1} * s.out_channels * epilogue.out(s.out_height()) * epilogue.out(s.out_width()) *
           s.batch;
  }

  static constexpr auto kForward = &DeviceOps::conv2d_forward;
  static constexpr auto kBackwardWeights = &DeviceOps::conv2d_backward_weights;
  static void backward_data(DeviceOps& ops, Stream& stream, const Conv2dShape& shape, const float* dy,
                            const float* w, const EpilogueBackward* expand, float* dx) {
    ops.conv2d_backward_data(stream, shape, dy, w, nullptr, expand, dx);
  }
  // Calls alone: Winograd and FFT are allowed here, which round more.
  static constexpr auto kForwardAlone = &VendorOps::conv2d_forward_alone;
  static constexpr auto kBackwardWeightsAlone = &VendorOps::conv2d_backward_weights_alone;
  static constexpr double kToleranceAlone = 1e-4;
};

struct FullyConnected {
  /// Those of Net, LeNet and the perceptron, then odd ones.
  static std::vector<LinearShape> shapes(int batch) {
    return {{batch, 320, 50}, {batch, 50, 10}, {batch, 1250, 128}, {batch, 128, 10},
            {batch, 784, 32}, {batch, 1, 1},   {batch, 3, 65},     {batch, 131, 7}};
  }
  static LinearShape one_of_net(int batch) { return {batch, 320, 50}; }
  static constexpr EpilogueBackward kExpand{.channels = 20, .height = 8, .width = 9, .pool = 2, .factors = 2};

  static std::vector<Epilogue> epilogues(const LinearShape& /*shape*/) { return epilogues_under_test(false); }
  static std::size_t size_after(const Epilogue& /*without a pool*/, const LinearShape& s) {
    return output_size(s);
  }

  static constexpr auto kForward = &DeviceOps::linear_forward;
  static constexpr auto kBackwardWeights = &DeviceOps::linear_backward_weights;
  static void backward_data(DeviceOps& ops, Stream& stream, const LinearShape& shape, const float* dy,
                            const float* w, const EpilogueBackward* expand, float* dx) {
    ops.linear_backward_data(stream, shape, dy, w, expand, dx);
  }
  static constexpr auto kForwardAlone = &VendorOps::linear_forward_alone;
  static constexpr auto kBackwardWeightsAlone = &VendorOps::linear_backward_weights_alone;
  static constexpr double kToleranceAlone = kVendorTolerance;
};

/// Exact sums of a layer's gradient.
template <class Layer, class Shape>
ExactSums weight_gradient(VendorRig& rig, DeviceOps& ops, const Shape& shape, int grain,
                          const std::vector<float>& x, const std::vector<float>& dy, float limit = 65536) {
  ExactSums sums(rig, shape.weight_size(), outputs_of(shape));
  std::invoke(Layer::kBackwardWeights, ops, rig.stream(), shape, grain, rig.upload(x).data(),
              rig.upload(dy).data(), sums.target(limit));
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
    int number = 0;
    for (const Epilogue& epilogue : TypeParam::epilogues(shape)) {
      const std::string what = "epilogue " + std::to_string(number++);
      for (const bool has_mask : {true, false}) {
        if (!has_mask && epilogue.count > 0) continue;
        const auto run = [&](DeviceOps& ops, const std::vector<float>& input, auto& masks) {
          const auto y = rig.poisoned<float>(TypeParam::size_after(epilogue, shape));
          const auto mask = rig.poisoned<std::uint8_t>(y.size());
          std::invoke(TypeParam::kForward, ops, rig.stream(), shape, rig.upload(input).data(), w.data(),
                      b.data(), epilogue, state.data(), y.data(), has_mask ? mask.data() : nullptr);
          masks = rig.download(mask);
          return rig.download(y);
        };
        std::vector<std::uint8_t> native_masks, vendor_masks;
        const auto native = run(rig.native(), x, native_masks);
        const auto vendor = run(rig.vendor(), to_samples(x, shape.batch), vendor_masks);
        expect_agreement(native, to_columns(vendor, shape.batch), kVendorTolerance, what);
        vendor_masks = to_columns(vendor_masks, shape.batch);
        std::size_t different = 0;
        for (std::size_t i = 0; i < native_masks.size(); ++i) different += native_masks[i] != vendor_masks[i];
        EXPECT_LE(different, native_masks.size() / 10000) << what << ": more than ties within rounding";
      }
    }
  });
}

TYPED_TEST(VendorLayerTest, DataGradientAgreesWithNative) {
  VendorRig rig;
  for_each_shape(TypeParam::shapes, [&](const auto& shape) {
    const auto dy = random_floats(output_size(shape), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto run = [&](DeviceOps& ops, const std::vector<float>& gradient) {
      const auto dx = rig.poisoned<float>(input_size(shape));
      TypeParam::backward_data(ops, rig.stream(), shape, rig.upload(gradient).data(), w.data(), nullptr,
                               dx.data());
      return rig.download(dx);
    };
    const auto vendor = run(rig.vendor(), to_samples(dy, shape.batch));
    expect_agreement(run(rig.native(), dy), to_columns(vendor, shape.batch), kVendorTolerance,
                     "data gradient");
  });
}

TYPED_TEST(VendorLayerTest, DataGradientThroughAnEpilogueAgreesWithNative) {
  VendorRig rig;
  for (const int batch : batches_under_test()) {
    const auto shape = TypeParam::one_of_net(batch);
    const auto dy = random_floats(output_size(shape), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto masks = random_masks(input_size(shape), 2, 3);
    const auto run = [&](DeviceOps& ops, const std::vector<float>& gradient,
                         const std::vector<std::uint8_t>& mask) {
      const auto mask_there = rig.upload(mask);
      EpilogueBackward expand = TypeParam::kExpand;
      expand.mask = mask_there.data();
      const auto dx =
          rig.poisoned<float>(std::size_t{1} * expand.channels * expand.height * expand.width * batch);
      TypeParam::backward_data(ops, rig.stream(), shape, rig.upload(gradient).data(), w.data(), &expand,
                               dx.data());
      return rig.download(dx);
    };
    const auto vendor = run(rig.vendor(), to_samples(dy, batch), to_samples(masks, batch));
    expect_agreement(run(rig.native(), dy, masks), to_columns(vendor, batch), kVendorTolerance,
                     "expanded data gradient of " + describe(shape));
  }
}

TYPED_TEST(VendorLayerTest, WeightGradientAgreesWithNativeForEveryGrain) {
  VendorRig rig;
  for_each_shape(TypeParam::shapes, [&](const auto& shape) {
    const auto x = random_floats(input_size(shape), 1), dy = random_floats(output_size(shape), 4);
    for (const int grain : {2, 3, 64}) {
      auto native = weight_gradient<TypeParam>(rig, rig.native(), shape, grain, x, dy);
      auto vendor = weight_gradient<TypeParam>(rig, rig.vendor(), shape, grain, to_samples(x, shape.batch),
                                               to_samples(dy, shape.batch));
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

  auto native = weight_gradient<TypeParam>(rig, rig.native(), shape, shape.batch, x, dy);
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
  auto sums = weight_gradient<FullyConnected>(rig, rig.vendor(), shape, 2, x, dy, 5);
  EXPECT_EQ(sums.refused(), 6) << "three weights of the first output, in two grains";
  EXPECT_EQ(sums.dw()[0], 0);
  EXPECT_NEAR(from_exact(sums.dw()[3]), 0.4, 1e-6);
  EXPECT_NEAR(from_exact(sums.db()[0]), 4, 1e-6);
}

TEST(VendorConv2dTest, WeightsNeedNoAlignment) {
  VendorRig rig;
  const Conv2dShape shape{3, 2, 6, 6, 4, 3, 3};
  const auto x = rig.upload(to_samples(random_floats(shape.in_size(), 1), 3));
  auto numbers = random_floats(shape.weight_size() + 1, 2);
  const auto shifted = rig.upload(numbers);
  const auto straight = rig.upload(std::vector<float>(numbers.begin() + 1, numbers.end()));
  const auto b = rig.upload(std::vector<float>(4, 1.0F));
  const auto run = [&](const float* w) {
    const auto y = rig.poisoned<float>(shape.out_size());
    rig.vendor().conv2d_forward(rig.stream(), shape, x.data(), w, b.data(), {}, nullptr, y.data(), nullptr);
    return rig.download(y);
  };
  EXPECT_EQ(run(shifted.data() + 1), run(straight.data()));
}

TEST(VendorConv2dTest, BiasesNeedNeitherAlignmentNorACopy) {
  VendorRig rig;
  for (const int size : {6, 5}) {  // outputs of 16 pixels and of 9
    const Conv2dShape shape{3, 2, size, size, 4, 3, 3};
    const auto x = rig.upload(to_samples(random_floats(shape.in_size(), 1), 3));
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto numbers = random_floats(5, 3);
    const auto shifted = rig.upload(numbers);
    const auto straight = rig.upload(std::vector<float>(numbers.begin() + 1, numbers.end()));
    const auto y = rig.poisoned<float>(shape.out_size());
    const auto queue = [&](const float* b) {
      rig.vendor().conv2d_forward(rig.stream(), shape, x.data(), w.data(), b, {}, nullptr, y.data(), nullptr);
    };
    const auto run = [&](const float* b) {
      queue(b);
      return rig.download(y);
    };
    EXPECT_EQ(run(shifted.data() + 1), run(straight.data()));
    const auto launches = [&](const float* b) {
      rig.stream().begin_capture();
      queue(b);
      return rig.stream().end_capture()->nodes();
    };
    EXPECT_EQ(launches(shifted.data() + 1), launches(straight.data()));
  }
}

}  // namespace
}  // namespace lockstep::test::layers_test
