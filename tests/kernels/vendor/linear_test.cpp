// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/numerics/sums.hpp"
#include "tests/kernels/vendor/vendor_rig.hpp"

namespace lockstep::test::linear_test {

namespace {

/// Those of Net, LeNet and the perceptron, then odd ones.
std::vector<LinearShape> shapes_under_test(int batch) {
  return {{batch, 320, 50}, {batch, 50, 10}, {batch, 1250, 128}, {batch, 128, 10},
          {batch, 784, 32}, {batch, 1, 1},   {batch, 3, 65},     {batch, 131, 7}};
}

std::size_t inputs(const LinearShape& s) {
  return std::size_t{1} * s.in_features * s.batch;
}
std::size_t outputs(const LinearShape& s) {
  return std::size_t{1} * s.out_features * s.batch;
}

TEST(VendorLinearTest, ForwardWithEpilogueAgreesWithNative) {
  VendorRig rig;
  const auto state = rig.upload(std::vector<StepState>{{.scalars = {}, .step = 11}});
  for_each_shape(shapes_under_test, [&](const LinearShape& shape) {
    const auto x = random_floats(inputs(shape), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto b = rig.upload(random_floats(static_cast<std::size_t>(shape.out_features), 3));
    int number = 0;
    for (const Epilogue& epilogue : epilogues_under_test(false)) {
      const auto run = [&](DeviceOps& ops, const std::vector<float>& input) {
        const auto y = rig.poisoned<float>(outputs(shape));
        const auto mask = rig.poisoned<std::uint8_t>(y.size());
        ops.linear_forward(rig.stream(), shape, rig.upload(input).data(), w.data(), b.data(), epilogue,
                           state.data(), y.data(), mask.data());
        return rig.download(y);
      };
      const std::string what = "epilogue " + std::to_string(number++);
      const auto native = run(rig.native(), x);
      const auto vendor = to_columns(run(rig.vendor(), to_samples(x, shape.batch)), shape.batch);
      expect_agreement(native, vendor, kVendorTolerance, what);
    }
  });
}

TEST(VendorLinearTest, DataGradientAgreesWithNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const LinearShape& shape) {
    const auto dy = random_floats(outputs(shape), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto run = [&](DeviceOps& ops, const std::vector<float>& gradient) {
      const auto dx = rig.poisoned<float>(inputs(shape));
      ops.linear_backward_data(rig.stream(), shape, rig.upload(gradient).data(), w.data(), nullptr,
                               dx.data());
      return rig.download(dx);
    };
    const auto vendor = run(rig.vendor(), to_samples(dy, shape.batch));
    expect_agreement(run(rig.native(), dy), to_columns(vendor, shape.batch), kVendorTolerance,
                     "data gradient");
  });
}

TEST(VendorLinearTest, DataGradientThroughAnEpilogueAgreesWithNative) {
  VendorRig rig;
  for (const int batch : batches_under_test()) {
    const LinearShape shape{batch, 320, 50};
    const auto dy = random_floats(outputs(shape), 1);
    const auto w = rig.upload(random_floats(shape.weight_size(), 2));
    const auto masks = random_masks(inputs(shape), 2, 3);
    const auto run = [&](DeviceOps& ops, const std::vector<float>& gradient,
                         const std::vector<std::uint8_t>& mask) {
      const auto mask_there = rig.upload(mask);
      const EpilogueBackward expand{
          .channels = 20, .height = 8, .width = 9, .pool = 2, .factors = 2, .mask = mask_there.data()};
      const auto dx = rig.poisoned<float>(std::size_t{20} * 8 * 9 * static_cast<std::size_t>(batch));
      ops.linear_backward_data(rig.stream(), shape, rig.upload(gradient).data(), w.data(), &expand,
                               dx.data());
      return rig.download(dx);
    };
    const auto vendor = run(rig.vendor(), to_samples(dy, batch), to_samples(masks, batch));
    expect_agreement(run(rig.native(), dy, masks), to_columns(vendor, batch), kVendorTolerance,
                     "expanded data gradient of " + describe(shape));
  }
}

ExactSums weight_gradient(VendorRig& rig, DeviceOps& ops, const LinearShape& shape, int grain,
                          const std::vector<float>& x, const std::vector<float>& dy, float limit = 65536) {
  ExactSums sums(rig, shape.weight_size(), static_cast<std::size_t>(shape.out_features));
  ops.linear_backward_weights(rig.stream(), shape, grain, rig.upload(x).data(), rig.upload(dy).data(),
                              sums.target(limit));
  rig.stream().synchronize();
  return sums;
}

TEST(VendorLinearTest, WeightGradientAgreesWithNativeForEveryGrain) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const LinearShape& shape) {
    const auto x = random_floats(inputs(shape), 1), dy = random_floats(outputs(shape), 4);
    for (const int grain : {2, 64}) {
      auto native = weight_gradient(rig, rig.native(), shape, grain, x, dy);
      auto vendor = weight_gradient(rig, rig.vendor(), shape, grain, to_samples(x, shape.batch),
                                    to_samples(dy, shape.batch));
      expect_agreement(native, vendor, "grain " + std::to_string(grain));
    }
  });
}

TEST(VendorLinearTest, TermsThatAnExactSumCannotTakeAreRefused) {
  VendorRig rig;
  const LinearShape shape{4, 3, 2};
  const std::vector<float> x(12, 10.0F), dy = {1, 0.01F, 1, 0.01F, 1, 0.01F, 1, 0.01F};
  auto sums = weight_gradient(rig, rig.vendor(), shape, 2, x, dy, 5);
  EXPECT_EQ(sums.refused(), 6) << "three weights of the first output, in two grains";
  EXPECT_EQ(sums.dw()[0], 0);
  EXPECT_NEAR(from_exact(sums.dw()[3]), 0.4, 1e-6);
  EXPECT_NEAR(from_exact(sums.db()[0]), 4, 1e-6);
}

TEST(VendorLinearTest, CallsAloneAgreeWithNative) {
  VendorRig rig;
  const LinearShape shape{batches_under_test().back(), 320, 50};
  const auto x = random_floats(inputs(shape), 1), dy = random_floats(outputs(shape), 4);
  const auto w = rig.upload(random_floats(shape.weight_size(), 2));
  const auto no_bias = rig.zeroed<float>(50);
  const auto y = rig.poisoned<float>(outputs(shape)), vendor_y = rig.poisoned<float>(outputs(shape));
  const auto vendor_dw = rig.poisoned<float>(shape.weight_size());
  const auto there = rig.upload(x), vendor_there = rig.upload(to_samples(x, shape.batch));
  const auto vendor_dy = rig.upload(to_samples(dy, shape.batch));
  rig.native().linear_forward(rig.stream(), shape, there.data(), w.data(), no_bias.data(), {}, nullptr,
                              y.data(), nullptr);
  rig.vendor().linear_forward_alone(rig.stream(), shape, vendor_there.data(), w.data(), vendor_y.data());
  expect_agreement(rig.download(y), to_columns(rig.download(vendor_y), shape.batch), kVendorTolerance,
                   "forward alone");

  auto native = weight_gradient(rig, rig.native(), shape, shape.batch, x, dy);
  rig.vendor().linear_backward_weights_alone(rig.stream(), shape, vendor_there.data(), vendor_dy.data(),
                                             vendor_dw.data());
  std::vector<float> dw;
  for (const std::int64_t sum : native.dw()) dw.push_back(static_cast<float>(from_exact(sum)));
  expect_agreement(dw, rig.download(vendor_dw), kVendorTolerance, "weight gradient alone");
}

}  // namespace

}  // namespace lockstep::test::linear_test

namespace lockstep::test::pool_test {

namespace {

/// Those of Net and LeNet, then odd ones.
std::vector<Pool2dShape> shapes_under_test(int batch) {
  return {{batch, 10, 24, 24},       {batch, 20, 8, 8},         {batch, 20, 26, 26},
          {batch, 50, 9, 9},         {batch, 3, 5, 7},          {batch, 2, 7, 5, 3, 2, 1},
          {batch, 1, 9, 9, 3, 3, 0}, {batch, 4, 6, 6, 3, 1, 1}, {batch, 2, 11, 8, 4, 3, 2},
          {batch, 1, 1, 1, 1, 1, 0}};
}

struct MaxPooled {
  std::vector<float> y, dx;
  std::vector<std::uint8_t> argmax;
};

MaxPooled max_pool(VendorRig& rig, DeviceOps& ops, const Pool2dShape& shape, const std::vector<float>& x,
                   const std::vector<float>& dy) {
  const auto y = rig.poisoned<float>(shape.out_size()), dx = rig.poisoned<float>(shape.in_size());
  const auto argmax = rig.poisoned<std::uint8_t>(shape.out_size());
  ops.max_pool_forward(rig.stream(), shape, rig.upload(x).data(), y.data(), argmax.data());
  ops.max_pool_backward(rig.stream(), shape, rig.upload(dy).data(), argmax.data(), dx.data());
  return {rig.download(y), rig.download(dx), rig.download(argmax)};
}

TEST(VendorPoolTest, MaxPoolEqualsNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Pool2dShape& shape) {
    const auto x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 2);
    const auto native = max_pool(rig, rig.native(), shape, x, dy);
    const auto vendor =
        max_pool(rig, rig.vendor(), shape, to_samples(x, shape.batch), to_samples(dy, shape.batch));
    EXPECT_EQ(native.y, to_columns(vendor.y, shape.batch)) << "y";
    EXPECT_EQ(native.argmax, to_columns(vendor.argmax, shape.batch)) << "argmax";
    EXPECT_EQ(native.dx, to_columns(vendor.dx, shape.batch)) << "dx";
  });
}

TEST(VendorPoolTest, LibrarysMaxPoolAgreesWithNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Pool2dShape& shape) {
    const auto x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 2);
    const auto native = max_pool(rig, rig.native(), shape, x, dy);
    const auto there = rig.upload(to_samples(x, shape.batch)),
               dy_there = rig.upload(to_samples(dy, shape.batch));
    const auto y = rig.poisoned<float>(shape.out_size()), dx = rig.poisoned<float>(shape.in_size());
    rig.vendor().max_pool_forward_alone(rig.stream(), shape, there.data(), y.data());
    rig.vendor().max_pool_backward_alone(rig.stream(), shape, there.data(), y.data(), dy_there.data(),
                                         dx.data());
    EXPECT_EQ(native.y, to_columns(rig.download(y), shape.batch)) << "y";
    expect_agreement(native.dx, to_columns(rig.download(dx), shape.batch), kVendorTolerance, "dx");
  });
}

TEST(VendorPoolTest, AveragePoolAgreesWithNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Pool2dShape& shape) {
    const auto x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 2);
    const auto forward = [&](DeviceOps& ops, const std::vector<float>& input) {
      const auto y = rig.poisoned<float>(shape.out_size());
      ops.avg_pool_forward(rig.stream(), shape, rig.upload(input).data(), y.data());
      return rig.download(y);
    };
    const auto backward = [&](DeviceOps& ops, const std::vector<float>& gradient) {
      const auto dx = rig.poisoned<float>(shape.in_size());
      ops.avg_pool_backward(rig.stream(), shape, rig.upload(gradient).data(), dx.data());
      return rig.download(dx);
    };
    const auto y = forward(rig.vendor(), to_samples(x, shape.batch));
    const auto dx = backward(rig.vendor(), to_samples(dy, shape.batch));
    expect_agreement(forward(rig.native(), x), to_columns(y, shape.batch), kVendorTolerance, "y");
    expect_agreement(backward(rig.native(), dy), to_columns(dx, shape.batch), kVendorTolerance, "dx");
  });
}

}  // namespace

}  // namespace lockstep::test::pool_test
