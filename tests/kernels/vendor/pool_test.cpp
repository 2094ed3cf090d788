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

TEST(VendorPoolTest, MaxPoolsEqualNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Pool2dShape& shape) {
    const auto x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 2);
    const auto run = [&](DeviceOps& ops, const std::vector<float>& input,
                         const std::vector<float>& gradient) {
      const auto y = rig.poisoned<float>(shape.out_size()), dx = rig.poisoned<float>(shape.in_size());
      const auto argmax = rig.poisoned<std::uint8_t>(shape.out_size());
      ops.max_pool_forward(rig.stream(), shape, rig.upload(input).data(), y.data(), argmax.data());
      ops.max_pool_backward(rig.stream(), shape, rig.upload(gradient).data(), argmax.data(), dx.data());
      return std::tuple(rig.download(y), rig.download(argmax), rig.download(dx));
    };
    const auto [native, vendor] = run_both(rig, shape.batch, run, x, dy);
    EXPECT_EQ(native, vendor) << "y, argmax, dx";
    // The library's own, which no training uses.
    const auto there = rig.upload(to_samples(x, shape.batch)),
               dy_there = rig.upload(to_samples(dy, shape.batch));
    const auto y = rig.poisoned<float>(shape.out_size()), dx = rig.poisoned<float>(shape.in_size());
    rig.vendor().max_pool_forward_alone(rig.stream(), shape, there.data(), y.data());
    rig.vendor().max_pool_backward_alone(rig.stream(), shape, there.data(), y.data(), dy_there.data(),
                                         dx.data());
    EXPECT_EQ(std::get<0>(native), to_columns(rig.download(y), shape.batch)) << "y";
    expect_agreement(std::get<2>(native), to_columns(rig.download(dx), shape.batch), kVendorTolerance, "dx");
  });
}

TEST(VendorPoolTest, AveragePoolAgreesWithNative) {
  VendorRig rig;
  for_each_shape(shapes_under_test, [&](const Pool2dShape& shape) {
    const auto x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 2);
    const auto run = [&](DeviceOps& ops, const std::vector<float>& input,
                         const std::vector<float>& gradient) {
      const auto y = rig.poisoned<float>(shape.out_size()), dx = rig.poisoned<float>(shape.in_size());
      ops.avg_pool_forward(rig.stream(), shape, rig.upload(input).data(), y.data());
      ops.avg_pool_backward(rig.stream(), shape, rig.upload(gradient).data(), dx.data());
      return std::tuple(rig.download(y), rig.download(dx));
    };
    const auto [native, vendor] = run_both(rig, shape.batch, run, x, dy);
    expect_agreement(std::get<0>(native), std::get<0>(vendor), kVendorTolerance, "y");
    expect_agreement(std::get<1>(native), std::get<1>(vendor), kVendorTolerance, "dx");
  });
}

}  // namespace
}  // namespace lockstep::test::pool_test
