// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pools of vendor ops beside the native ones.
#include "tests/kernels/vendor/vendor_rig.hpp"

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
