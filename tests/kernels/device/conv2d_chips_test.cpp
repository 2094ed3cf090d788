// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How large a chip is decides which tiles a convolution is cut into, and nothing else: the same bits on all.
#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/device/conv2d_problem.hpp"

namespace lockstep::test::conv2d_chips_test {
namespace {

// batch, C, H, W, K, R, S, stride, padding
const Conv2dShape kShapes[] = {
    {33, 3, 12, 12, 10, 5, 5, 1, 0}, {40, 5, 9, 13, 11, 5, 5, 1, 0}, {5, 7, 10, 10, 12, 3, 3, 1, 1},
    {3, 4, 9, 20, 10, 3, 3, 1, 0},   {2, 10, 8, 18, 6, 5, 5, 1, 2},  {17, 2, 3, 5, 5, 3, 3, 1, 0},
};

class Conv2dChipsTest : public testing::Test {
 protected:
  struct Results {
    std::vector<float> y, dx;
    std::vector<std::int64_t> sums;
  };

  Results run(const Conv2dOnDevice& p, emulated::Chip chip) {
    const auto stream = static_cast<cudaStream_t>(rig_.stream().native_handle());
    const auto y = rig_.poisoned<float>(p.shape.out_size()), dx = rig_.poisoned<float>(p.shape.in_size());
    const ExactSums sums(rig_, p.shape, 4e6F);
    emulated::conv2d_forward(stream, chip, p.shape, p.x(), p.w(), p.b(), {}, nullptr, y.data(), nullptr);
    emulated::conv2d_backward_data(stream, chip, p.shape, p.dy(), p.w(), nullptr, dx.data());
    emulated::conv2d_backward_weights(stream, chip, p.shape, 32, p.x(), p.dy(), sums.gradient);
    return {rig_.download(y), rig_.download(dx), sums.download(rig_)};
  }

  DeviceRig rig_;
};

TEST_F(Conv2dChipsTest, BitsAreTheSameForEveryNumberOfMultiprocessors) {
  for (const Conv2dShape& shape : kShapes) {
    const Conv2dProblem p(shape);
    const Conv2dOnDevice on_device(rig_, p);
    const Results expected = run(on_device, {1});
    for (const int multiprocessors : {3, 16, 60, 132, 1000}) {
      SCOPED_TRACE(describe(shape) + ", " + std::to_string(multiprocessors) + " multiprocessors");
      const Results actual = run(on_device, {multiprocessors});
      EXPECT_EQ(actual.y, expected.y);
      EXPECT_EQ(actual.dx, expected.dx);
      EXPECT_EQ(actual.sums, expected.sums);
    }
  }
}

}  // namespace
}  // namespace lockstep::test::conv2d_chips_test
