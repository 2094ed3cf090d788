// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/numerics/portable_math.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

TEST(PortableMathTest, LogarithmAgreesWithTheLibrary) {
  for (double x = 1e-10; x < 1e10; x *= 1.0137) {
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
}

TEST(PortableMathTest, QuantileInvertsTheNormalDistribution) {
  for (double p = 1.2e-10; p < 0.5; p *= 1.31) {
    const double low = 0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0));
    EXPECT_NEAR(low / p, 1, 1e-5) << p;
    EXPECT_NEAR(normal_quantile(1 - p), -normal_quantile(p), 1e-5) << p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
}

TEST(PortableMathTest, ExponentialCosineAndPowersAreThoseOfTheLibrary) {
  for (double x = -20; x < 20; x += 0.0371) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-13) << x;
  EXPECT_EQ(portable_exp(0), 1);
  for (double x = 0; x <= 3.14159265358979; x += 0.00317)
    EXPECT_NEAR(portable_cos(x), std::cos(x), 1e-15) << x;
  EXPECT_EQ(portable_cos(0), 1);
  EXPECT_EQ(portable_cos(3.14159265358979323846), -1);
  for (const int n : {0, 1, 2, 3, 10, 1000})
    EXPECT_NEAR(integer_power(0.999, n) / std::pow(0.999, n), 1, 1e-13) << n;
  EXPECT_EQ(integer_power(0, 0), 1);
}

}  // namespace
}  // namespace lockstep
