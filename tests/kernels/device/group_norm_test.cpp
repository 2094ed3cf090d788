// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// layer_norm and group_norm, products with a gate, and copied features on a device: the bits of the CPU.
#include "kernels/cpu/ops.hpp"
#include "kernels/shapes.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/layer_problem.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {
namespace {

constexpr int kBatch = 32;  // without padding columns on the CPU
constexpr int kGrain = 16;

std::size_t numbers_of(const GroupNormShape& s) {
  return static_cast<std::size_t>(s.channels * s.pixels * s.batch);
}

class DeviceGroupNormTest : public testing::Test {
 protected:
  void try_shape(const GroupNormShape& shape, bool affine) {
    const std::vector<float> x = random_floats(numbers_of(shape), 1),
                             dy = random_floats(numbers_of(shape), 2),
                             weights = random_floats(static_cast<std::size_t>(2 * shape.channels), 3);
    const float* weight = affine ? weights.data() : nullptr;
    std::vector<float> y(x.size()), dx(x.size()), statistics(shape.statistics_size());
    cpu::group_norm_forward(shape, 1e-3, x.data(), weight, weights.data() + shape.channels, statistics.data(),
                            y.data());
    cpu::group_norm_backward(shape, x.data(), dy.data(), weight, statistics.data(), dx.data());
    const auto from = rig_.upload(x), gradient = rig_.upload(dy), parameters = rig_.upload(weights);
    const auto to = rig_.poisoned<float>(x.size()), back = rig_.poisoned<float>(x.size()),
               kept = rig_.poisoned<float>(statistics.size());
    const float* on_device = affine ? parameters.data() : nullptr;
    rig_.ops().group_norm_forward(rig_.stream(), shape, 1e-3, from.data(), on_device,
                                  parameters.data() + shape.channels, kept.data(), to.data());
    rig_.ops().group_norm_backward(rig_.stream(), shape, from.data(), gradient.data(), on_device, kept.data(),
                                   back.data());
    EXPECT_EQ(rig_.download(kept), statistics);
    EXPECT_EQ(rig_.download(to), y);
    EXPECT_EQ(rig_.download(back), dx);
    const auto sums = rig_.zeroed<std::int64_t>(weights.size() + 1);
    const ExactFormat format{.limit = 1e4F};
    const Refusals refusals{sums.data() + weights.size(), nullptr};
    rig_.ops().group_norm_weight_gradients(
        rig_.stream(), shape, kGrain, from.data(), gradient.data(), kept.data(),
        {{sums.data(), format, refusals}, {sums.data() + shape.channels, format, refusals}});
    EXPECT_EQ(rig_.download(sums), exact_gradients(shape, x, dy, statistics));
  }

  /// Grain by grain, and none refused.
  static std::vector<std::int64_t> exact_gradients(const GroupNormShape& whole, const std::vector<float>& x,
                                                   const std::vector<float>& dy,
                                                   const std::vector<float>& statistics) {
    GroupNormShape shape = whole;
    shape.batch = kGrain;
    const auto channels = static_cast<std::size_t>(shape.channels);
    std::vector<std::int64_t> sums(2 * channels + 1);
    for (int first = 0; first < kBatch; first += kGrain) {
      std::vector<float> gradients(2 * channels);
      const auto grain_of = [&](const std::vector<float>& all) {
        return columns_of(all, kBatch, first, kGrain);
      };
      cpu::group_norm_weight_gradients(shape, grain_of(x).data(), grain_of(dy).data(),
                                       grain_of(statistics).data(), gradients.data(),
                                       gradients.data() + channels);
      cpu::accumulate_exact(gradients.size(), gradients.data(), {.limit = 1e4F}, sums.data());
    }
    return sums;
  }

  DeviceRig rig_;
};

TEST_F(DeviceGroupNormTest, HasTheBitsOfTheCpuInEveryThreadOrder) {
  for (const std::uint64_t seed : thread_orders()) {
    SCOPED_TRACE(fmt::format("thread order {}", seed));
    set_thread_order(seed);
    for (const GroupNormShape& shape : {GroupNormShape{kBatch, 1, 1, 1},
                                        {kBatch, 1, 40, 1},
                                        {kBatch, 2, 6, 5},
                                        {kBatch, 6, 6, 16},
                                        {kBatch, 1, 3, 49}}) {
      try_shape(shape, true);
      try_shape(shape, false);
    }
  }
  set_thread_order(0);
}

TEST_F(DeviceGroupNormTest, NormalisesEachGroupOfEachSample) {
  const GroupNormShape shape{kBatch, 2, 4, 9};
  std::vector<float> x = random_floats(numbers_of(shape), 5), y(x.size()),
                     statistics(shape.statistics_size());
  for (float& number : x) number = 1000 + 3 * number;
  cpu::group_norm_forward(shape, 1e-12, x.data(), nullptr, nullptr, statistics.data(), y.data());
  for (std::size_t g = 0; g < 2; ++g) {
    for (std::size_t n = 0; n < kBatch; ++n) {
      double sum = 0, squares = 0;
      for (std::size_t k = 0; k < 18; ++k) {
        const double value = y[(g * 18 + k) * kBatch + n];
        sum += value;
        squares += value * value;
      }
      EXPECT_NEAR(sum / 18, 0, 1e-4);
      EXPECT_NEAR(squares / 18, 1, 1e-4);
    }
  }
}

TEST_F(DeviceGroupNormTest, GatesHaveTheBitsOfTheCpu) {
  for (const ScaleShape& shape :
       {ScaleShape{kBatch, 1, 1}, {kBatch, 5, 1}, {kBatch, 3, 7}, {kBatch, 2, 64}}) {
    const auto outputs = static_cast<std::size_t>(shape.channels * shape.batch),
               size = outputs * static_cast<std::size_t>(shape.pixels);
    const std::vector<float> x = random_floats(size, 1), other = random_floats(size, 2),
                             scale = random_floats(outputs, 3);
    const auto a = rig_.upload(x), b = rig_.upload(other), gate = rig_.upload(scale);
    for (const bool adds : {false, true}) {
      std::vector<float> y = other, sums = scale;
      cpu::scale_channels(shape, x.data(), scale.data(), adds, y.data());
      cpu::sum_products(shape, x.data(), other.data(), adds, sums.data());
      const auto to = rig_.upload(other), products = rig_.upload(scale);
      rig_.ops().scale_channels(rig_.stream(), shape, a.data(), gate.data(), adds, to.data());
      rig_.ops().sum_products(rig_.stream(), shape, a.data(), b.data(), adds, products.data());
      EXPECT_EQ(rig_.download(to), y);
      EXPECT_EQ(rig_.download(products), sums);
      EXPECT_EQ(y[7], adds ? other[7] + x[7] * scale[7] : x[7] * scale[7]);
    }
  }
}

TEST_F(DeviceGroupNormTest, CopiesFeaturesAmongOthers) {
  const std::vector<float> x = random_floats(5 * kBatch, 1), others = random_floats(9 * kBatch, 2);
  const auto from = rig_.upload(x);
  for (const bool adds : {false, true}) {
    std::vector<float> y = others;
    for (std::size_t i = 0; i < 3 * kBatch; ++i) {
      float& number = y[4 * kBatch + i];
      number = adds ? number + x[2 * kBatch + i] : x[2 * kBatch + i];
    }
    const auto to = rig_.upload(others);
    rig_.ops().copy_features(rig_.stream(), {kBatch, 3, 5, 2, 9, 4}, from.data(), adds, to.data());
    EXPECT_EQ(rig_.download(to), y);
  }
}

TEST_F(DeviceGroupNormTest, AdaptivePoolHasTheBitsOfTheCpu) {
  for (const AdaptivePoolShape& shape : {AdaptivePoolShape{kBatch, 2, 7, 7, 3, 3},
                                         {kBatch, 1, 5, 4, 5, 4},
                                         {kBatch, 3, 2, 3, 5, 5},
                                         {kBatch, 2, 8, 6, 1, 1}}) {
    const std::vector<float> x = random_floats(shape.in_size(), 1), dy = random_floats(shape.out_size(), 2);
    std::vector<float> y(shape.out_size()), dx(shape.in_size());
    cpu::adaptive_avg_pool_forward(shape, x.data(), y.data());
    cpu::adaptive_avg_pool_backward(shape, dy.data(), dx.data());
    const auto from = rig_.upload(x), gradient = rig_.upload(dy);
    const auto to = rig_.poisoned<float>(y.size()), back = rig_.poisoned<float>(dx.size());
    rig_.ops().adaptive_avg_pool_forward(rig_.stream(), shape, from.data(), to.data());
    rig_.ops().adaptive_avg_pool_backward(rig_.stream(), shape, gradient.data(), back.data());
    EXPECT_EQ(rig_.download(to), y);
    EXPECT_EQ(rig_.download(back), dx);
  }
}

}  // namespace
}  // namespace lockstep::test
