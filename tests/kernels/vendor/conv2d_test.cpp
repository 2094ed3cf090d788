// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/numerics/sums.hpp"
#include "tests/kernels/vendor/vendor_rig.hpp"

namespace lockstep::test::conv2d_test {
namespace {

/// Those of Net and LeNet, then odd ones.
std::vector<Conv2dShape> shapes_under_test(int batch) {
  return {{batch, 1, 28, 28, 10, 5, 5},       {batch, 10, 12, 12, 20, 5, 5},
          {batch, 1, 28, 28, 20, 3, 3},       {batch, 20, 13, 13, 50, 5, 5},
          {batch, 3, 5, 7, 4, 3, 3, 1, 1},    {batch, 2, 9, 8, 3, 2, 4},
          {batch, 1, 5, 7, 1, 5, 7},          {batch, 5, 11, 6, 7, 3, 2, 2, 1},
          {batch, 7, 1, 1, 3, 1, 1},          {batch, 3, 16, 16, 9, 5, 5, 3, 2},
          {batch, 6, 7, 8, 4, 3, 3, 1, 1, 2}, {batch, 3, 11, 9, 2, 3, 3, 2, 1, 1, 2}};
}

std::size_t after(const Epilogue& epilogue, const Conv2dShape& s) {
  return std::size_t{1} * s.out_channels * epilogue.out(s.out_height()) * epilogue.out(s.out_width()) *
         s.batch;
}

void check_forward(VendorRig& rig, const Conv2dShape& shape, const Epilogue& epilogue,
                   const std::string& what) {
  const auto x = random_floats(shape.in_size(), 1);
  const auto w = rig.upload(random_floats(shape.weight_size(), 2));
  const auto b = rig.upload(random_floats(static_cast<std::size_t>(shape.out_channels), 3));
  const auto state = rig.upload(std::vector<StepState>{{.scalars = {}, .step = 11}});
  const auto run = [&](DeviceOps& ops, const std::vector<float>& input, auto& masks) {
    const auto y = rig.poisoned<float>(after(epilogue, shape));
    const auto mask = rig.poisoned<std::uint8_t>(y.size());
    ops.conv2d_forward(rig.stream(), shape, rig.upload(input).data(), w.data(), b.data(), epilogue,
                       state.data(), y.data(), epilogue.count == 0 ? nullptr : mask.data());
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

TEST(VendorConv2dTest, ForwardWithEpilogueAgreesWithNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Conv2dShape& shape) {
    const bool poolable = shape.out_height() > 1 && shape.out_width() > 1;
    int number = 0;
    for (const Epilogue& epilogue : epilogues_under_test(poolable)) {
      check_forward(rig, shape, epilogue, "epilogue " + std::to_string(number++));
    }
  });
}

TEST(VendorConv2dTest, DataGradientAgreesWithNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Conv2dShape& shape) {
    const auto dy = random_floats(shape.out_size(), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto run = [&](DeviceOps& ops, const std::vector<float>& gradient) {
      const auto dx = rig.poisoned<float>(shape.in_size());
      ops.conv2d_backward_data(rig.stream(), shape, rig.upload(gradient).data(), w.data(), nullptr, nullptr,
                               dx.data());
      return rig.download(dx);
    };
    const auto vendor = run(rig.vendor(), to_samples(dy, shape.batch));
    expect_agreement(run(rig.native(), dy), to_columns(vendor, shape.batch), kVendorTolerance,
                     "data gradient");
  });
}

TEST(VendorConv2dTest, DataGradientThroughAnEpilogueAgreesWithNative) {
  VendorRig rig;
  for (const int batch : batches_under_test()) {
    const Conv2dShape shape{batch, 10, 12, 12, 20, 5, 5};
    const auto dy = random_floats(shape.out_size(), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto masks = random_masks(shape.in_size(), 2, 3);
    const auto run = [&](DeviceOps& ops, const std::vector<float>& gradient,
                         const std::vector<std::uint8_t>& mask) {
      const auto mask_there = rig.upload(mask);
      const EpilogueBackward expand{
          .channels = 10, .height = 25, .width = 24, .pool = 2, .factors = 0.5F, .mask = mask_there.data()};
      const auto dx = rig.poisoned<float>(std::size_t{10} * 25 * 24 * static_cast<std::size_t>(batch));
      ops.conv2d_backward_data(rig.stream(), shape, rig.upload(gradient).data(), w.data(), nullptr, &expand,
                               dx.data());
      return rig.download(dx);
    };
    const auto vendor = run(rig.vendor(), to_samples(dy, batch), to_samples(masks, batch));
    expect_agreement(run(rig.native(), dy, masks), to_columns(vendor, batch), kVendorTolerance,
                     "expanded data gradient of " + describe(shape));
  }
}

TEST(VendorConv2dTest, WeightGradientAgreesWithNativeForEveryGrain) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Conv2dShape& shape) {
    const auto x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 4);
    for (const int grain : {3, 64}) {
      const auto run = [&](DeviceOps& ops, const std::vector<float>& input,
                           const std::vector<float>& output) {
        ExactSums sums(rig, shape.weight_size(), static_cast<std::size_t>(shape.out_channels));
        ops.conv2d_backward_weights(rig.stream(), shape, grain, rig.upload(input).data(),
                                    rig.upload(output).data(), sums.target());
        rig.stream().synchronize();
        return sums;
      };
      auto native = run(rig.native(), x, dy);
      auto vendor = run(rig.vendor(), to_samples(x, shape.batch), to_samples(dy, shape.batch));
      expect_agreement(native, vendor, "grain " + std::to_string(grain));
    }
  });
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

TEST(VendorConv2dTest, CallsAloneAgreeWithNative) {
  VendorRig rig;
  const auto fastest = vendor_ops_under_test(rig.device(), VendorAlgorithms::kFastest);
  const Conv2dShape shape{batches_under_test().back(), 10, 12, 12, 20, 5, 5};
  const auto x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 4);
  const auto w = rig.upload(random_floats(shape.weight_size(), 2));
  const auto no_bias = rig.zeroed<float>(20);
  const auto y = rig.poisoned<float>(shape.out_size()), vendor_y = rig.poisoned<float>(shape.out_size());
  const auto vendor_dw = rig.poisoned<float>(shape.weight_size());
  const auto there = rig.upload(x), vendor_there = rig.upload(to_samples(x, shape.batch));
  rig.native().conv2d_forward(rig.stream(), shape, there.data(), w.data(), no_bias.data(), {}, nullptr,
                              y.data(), nullptr);
  fastest->conv2d_forward_alone(rig.stream(), shape, vendor_there.data(), w.data(), vendor_y.data());
  // Winograd and FFT are allowed here, which round more.
  expect_agreement(rig.download(y), to_columns(rig.download(vendor_y), shape.batch), 1e-4, "forward alone");

  ExactSums sums(rig, shape.weight_size(), 20);
  rig.native().conv2d_backward_weights(rig.stream(), shape, shape.batch, there.data(), rig.upload(dy).data(),
                                       sums.target());
  const auto vendor_dy = rig.upload(to_samples(dy, shape.batch));
  fastest->conv2d_backward_weights_alone(rig.stream(), shape, vendor_there.data(), vendor_dy.data(),
                                         vendor_dw.data());
  std::vector<float> dw;
  for (const std::int64_t sum : sums.dw()) dw.push_back(static_cast<float>(from_exact(sum)));
  expect_agreement(dw, rig.download(vendor_dw), 1e-4, "weight gradient alone");
}

}  // namespace
}  // namespace lockstep::test::conv2d_test
