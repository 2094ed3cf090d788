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

}  // namespace
}  // namespace lockstep
