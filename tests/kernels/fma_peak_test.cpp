// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The measured peak is a speed, not a constant or an accident.
#include "kernels/cpu/fma_peak.hpp"

#include "gtest/gtest.h"

#include <cmath>

namespace lockstep::fma_peak_test {
namespace {

TEST(FmaPeakTest, IsAFiniteSpeedBetweenAMegaflopAndATeraflop) {
  const double peak = cpu::measure_fma_peak(0.01);
  EXPECT_TRUE(std::isfinite(peak));
  EXPECT_GT(peak, 1e6);
  EXPECT_LT(peak, 1e12);
}

}  // namespace
}  // namespace lockstep::fma_peak_test
