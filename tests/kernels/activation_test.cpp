// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ReLU at many sizes, in place, with NaN, infinities and signed zeros; activations with a curve; and sums.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::activation_test {

namespace {

using reference::random_tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::size_t kSizes[] = {0, 1, 3, 15, 16, 17, 31, 32, 63, 64, 100, 1024, 4321};

/// Random numbers behind odd ones.
std::vector<float> numbers_behind(std::vector<float> odd, std::size_t size, unsigned seed) {
  const auto random = random_tensor(size, seed);
  odd.insert(odd.end(), random.span().begin(), random.span().end());
  odd.resize(size);
  return odd;
}

TEST(ReluTest, PassesWhatIsPositiveAlsoInPlaceOnEverySimdTarget) {
  for (const std::size_t size : kSizes) {
    SCOPED_TRACE(size);
    const auto x = numbers_behind({0, -0.0F, kNan, kInfinity, -kInfinity, 1e-45F, -1e-45F}, size, 1);
    const auto dy = numbers_behind({kInfinity, kNan, 3, 7, kNan, 5, -kInfinity}, size, 2);
    reference::expect_same_bits(reference::all_targets(), [&] {
      std::vector<float> y(size), evaluated(size), dx(size), in_place = x, gradient_in_place = dy;
      // Signs of numbers, followed by a byte that must stay.
      std::vector<std::uint8_t> signs(sign_bytes(size) + 1, 0xA5), signs_in_place = signs;
      cpu::relu_forward(size, x.data(), y.data(), signs.data());
      EXPECT_EQ(signs.back(), 0xA5);
      cpu::relu_forward(size, x.data(), evaluated.data(), nullptr);
      cpu::relu_backward(size, signs.data(), dy.data(), dx.data());
      for (std::size_t i = 0; i < size; ++i) {
        EXPECT_TRUE(std::isnan(x[i]) ? std::isnan(y[i]) : y[i] == std::max(x[i], 0.0F)) << "index " << i;
        EXPECT_TRUE(std::isnan(x[i]) ? std::isnan(evaluated[i]) : evaluated[i] == y[i]) << "index " << i;
        EXPECT_EQ(dx[i], x[i] > 0 ? dy[i] : 0) << "index " << i;
      }
      cpu::relu_forward(size, in_place.data(), in_place.data(), signs_in_place.data());
      EXPECT_TRUE(size == 0 || std::memcmp(in_place.data(), y.data(), size * sizeof(float)) == 0);
      EXPECT_EQ(signs_in_place, signs);
      cpu::relu_backward(size, signs.data(), gradient_in_place.data(), gradient_in_place.data());
      EXPECT_EQ(gradient_in_place, dx);
      y.insert(y.end(), dx.begin(), dx.end());
      y.insert(y.end(), signs.begin(), signs.end());
      return y;
    });
  }
}

}  // namespace

}  // namespace lockstep::activation_test

namespace lockstep::smooth_activation_test {

// Activations with a curve on the CPU, against double. How far they are off in units of the last place, what
// they do at the ends of the numbers, and that bits do not depend on the SIMD target.

namespace {

using reference::curve_of;
using reference::kActivations;
using reference::spread_numbers;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> forward(const ActivationFunction& kind, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  cpu::activation_forward(kind, x.size(), x.data(), y.data());
  return y;
}

/// dx where dy is 1.
std::vector<float> slopes(const ActivationFunction& kind, const std::vector<float>& x) {
  const std::vector<float> saved = kind.saves_input() ? x : forward(kind, x);
  std::vector<float> dx(x.size(), 1);
  cpu::activation_backward(kind, x.size(), saved.data(), dx.data(), dx.data());
  return dx;
}

/// The distance between two neighbouring floats there.
double unit_at(double x) {
  const auto size = static_cast<float>(std::abs(x));
  return static_cast<double>(std::nextafter(size, std::numeric_limits<float>::infinity())) - size;
}

TEST(SmoothActivationTest, ForwardIsWithinAFewUnitsOfDouble) {
  const std::vector<float> x = spread_numbers(200003);
  for (const auto& [kind, name, units] : kActivations) {
    const std::vector<float> y = forward(kind, x);
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto exact = curve_of(kind, x[i]);
      const double off = std::abs(y[i] - exact.value) / (unit_at(exact.value) * exact.condition);
      if (off > worst) worst = off, where = x[i];
    }
    EXPECT_LE(worst, units) << name << " of " << where;
  }
}

TEST(SmoothActivationTest, SlopeIsWithinAFewUnitsOfOne) {
  const std::vector<float> x = spread_numbers(200003);
  for (const auto& [kind, name, units] : kActivations) {
    const std::vector<float> dx = slopes(kind, x);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(dx[i], curve_of(kind, x[i]).slope, 6e-7) << name << " at " << x[i];
  }
}

TEST(SmoothActivationTest, EndsOfTheNumbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(forward(Activation::kTanh, {infinity, -infinity, 0, 1e-45F, -1e-45F, 3e38F}),
            (std::vector<float>{1, -1, 0, 1e-45F, -1e-45F, 1}));
  EXPECT_TRUE(std::signbit(forward(Activation::kTanh, {-0.0F})[0]));
  EXPECT_EQ(forward(Activation::kSigmoid, {infinity, -infinity, 0, -0.0F, -3e38F}),
            (std::vector<float>{1, 0, 0.5F, 0.5F, 0}));
  for (const Activation gelu : {Activation::kGelu, Activation::kGeluTanh}) {
    EXPECT_EQ(forward(gelu, {infinity, 0, 1e30F, -1e30F, -100}),
              (std::vector<float>{infinity, 0, 1e30F, 0, 0}));
    EXPECT_EQ(slopes(gelu, {infinity, -infinity, 0, 3e38F, -3e38F}), (std::vector<float>{1, 0, 0.5F, 1, 0}));
  }
  for (const auto& [kind, name, units] : kActivations) {
    EXPECT_TRUE(std::isnan(forward(kind, {kNan})[0])) << name;
    EXPECT_TRUE(std::isnan(slopes(kind, {kNan})[0])) << name;
  }
}

TEST(SmoothActivationTest, WorksInPlaceForAnySize) {
  for (const auto& [kind, name, units] : kActivations) {
    for (const std::size_t size : {0, 1, 15, 16, 17, 100}) {
      std::vector<float> x = spread_numbers(size);
      const std::vector<float> expected = forward(kind, x);
      cpu::activation_forward(kind, size, x.data(), x.data());
      EXPECT_EQ(x, expected) << name << ", size " << size;
    }
  }
}

TEST(SmoothActivationTest, BitsAreTheSameOnEverySimdTarget) {
  reference::expect_same_bits(reference::all_targets(), [] {
    const std::vector<float> x = spread_numbers(3001);
    std::vector<float> all;
    for (const auto& [kind, name, units] : kActivations) {
      for (const auto& part : {forward(kind, x), slopes(kind, x)})
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  });
}

TEST(AddTest, IsTheSumAndWorksInPlace) {
  for (const std::size_t size : {0, 1, 16, 37, 1000}) {
    const std::vector<float> a = spread_numbers(size);
    std::vector<float> b(a.rbegin(), a.rend()), y(size);
    cpu::add(size, a.data(), b.data(), y.data());
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(y[i], a[i] + b[i]);
    cpu::add(size, a.data(), b.data(), b.data());
    EXPECT_EQ(b, y);
  }
}

}  // namespace

}  // namespace lockstep::smooth_activation_test

namespace lockstep::fma_peak_test {

// The measured peak is a speed, not a constant or an accident.

namespace {

TEST(FmaPeakTest, IsAFiniteSpeedBetweenAMegaflopAndATeraflop) {
  const double peak = cpu::measure_fma_peak(0.01);
  EXPECT_TRUE(std::isfinite(peak));
  EXPECT_GT(peak, 1e6);
  EXPECT_LT(peak, 1e12);
}

}  // namespace

}  // namespace lockstep::fma_peak_test
