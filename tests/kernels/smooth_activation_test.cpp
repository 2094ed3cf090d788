// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Activations with a curve on the CPU, against double: how far they are off in units of the last place, what
/// they do at the ends of the numbers, and that bits do not depend on the SIMD target.
#include "tests/kernels/reference/smooth_activation.hpp"

#include "gtest/gtest.h"
#include "kernels/cpu/activation.hpp"
#include "tests/kernels/reference/simd.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace lockstep::smooth_activation_test {
namespace {

using reference::curve_of;
using reference::kActivations;
using reference::spread_numbers;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> forward(Activation kind, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  cpu::activation_forward(kind, x.size(), x.data(), y.data());
  return y;
}

/// dx where dy is 1.
std::vector<float> slopes(Activation kind, const std::vector<float>& x) {
  const std::vector<float> saved = reference::saves_input(kind) ? x : forward(kind, x);
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
