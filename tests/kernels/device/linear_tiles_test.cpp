// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kernels of fully connected layers choose their tiles by the number of multiprocessors: the same bits
/// with all of them. The emulator takes any number.
#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test::linear_tiles_test {
namespace {

constexpr int kMultiprocessors[] = {1, 8, 20, 50, 132, 100'000};

/// 2 to 40 tiles of each size.
const LinearShape kShapes[] = {{150, 320, 50}, {64, 800, 33}, {70, 45, 130}, {260, 128, 10}, {33, 1000, 9}};

struct Results {
  std::vector<float> y, dx;
  std::vector<std::int64_t> dw;
};

class LinearTilesTest : public testing::Test {
 protected:
  Results run(const LinearShape& shape, const emulated::Chip& chip) {
    const auto columns = static_cast<std::size_t>(shape.batch);
    const auto inputs = static_cast<std::size_t>(shape.in_features);
    const auto outputs = static_cast<std::size_t>(shape.out_features);
    const auto x = rig_.upload(random_numbers(inputs * columns, 1));
    const auto w = rig_.upload(random_numbers(inputs * outputs, 2));
    const auto b = rig_.upload(random_numbers(outputs, 3));
    const auto dy = rig_.upload(random_numbers(outputs * columns, 4));
    const auto y = rig_.poisoned<float>(outputs * columns), dx = rig_.poisoned<float>(inputs * columns);
    const auto dw = rig_.zeroed<std::int64_t>((inputs + 1) * outputs + 1);
    std::int64_t* const db = dw.data() + inputs * outputs;
    auto* const stream = static_cast<cudaStream_t>(rig_.stream().native_handle());
    emulated::linear_forward(stream, chip, shape, x.data(), w.data(), b.data(), {}, nullptr, y.data(),
                             nullptr);
    emulated::linear_backward_data(stream, chip, shape, dy.data(), w.data(), nullptr, dx.data());
    emulated::linear_backward_weights(
        stream, chip, shape, 64, x.data(), dy.data(),
        {{dw.data(), {.limit = 1000}, {db + outputs}}, {db, {.limit = 1000}, {db + outputs}}});
    return {rig_.download(y), rig_.download(dx), rig_.download(dw)};
  }

  DeviceRig rig_;
};

TEST_F(LinearTilesTest, EveryTileGivesTheSameBits) {
  for (const LinearShape& shape : kShapes) {
    const Results expected = run(shape, {kMultiprocessors[0]});
    for (const int multiprocessors : kMultiprocessors) {
      SCOPED_TRACE("batch " + std::to_string(shape.batch) + ", " + std::to_string(shape.in_features) +
                   " inputs, " + std::to_string(shape.out_features) + " outputs, " +
                   std::to_string(multiprocessors) + " multiprocessors");
      const Results results = run(shape, {multiprocessors});
      EXPECT_EQ(results.y, expected.y);
      EXPECT_EQ(results.dx, expected.dx);
      EXPECT_EQ(results.dw, expected.dw);
    }
  }
}

}  // namespace
}  // namespace lockstep::test::linear_tiles_test
