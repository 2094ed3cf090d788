// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/bench/kernel_table.hpp"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

DeviceProperties h100() {
  DeviceProperties properties;
  properties.compute_major = 9;
  properties.multiprocessors = 132;
  properties.clock_mhz = 1980;
  properties.memory_clock_mhz = 2619;
  properties.memory_bus_bits = 5120;
  return properties;
}

KernelRow row(double native_us, std::optional<double> vendor_us, std::optional<double> library_us) {
  const auto seconds = [](std::optional<double> us) { return us ? std::optional(*us * 1e-6) : std::nullopt; };
  return {{.name = "conv2 forward", .op = GatherOp{}, .batch = 64, .flops = 4.5e7, .bytes = 8e5},
          {native_us * 1e-6, seconds(vendor_us), seconds(library_us)}};
}

constexpr GpuLimits kLimits{.flops_per_second = 6e13, .bytes_per_second = 4e12, .launch_seconds = 1e-6};

TEST(KernelTableTest, NominalRatesAreThoseOfTheDataSheet) {
  EXPECT_NEAR(nominal_flops_per_second(h100()) * 1e-12, 66.9, 0.1);
  EXPECT_NEAR(nominal_memory_bytes_per_second(h100()) * 1e-12, 3.35, 0.01);
  DeviceProperties a100 = h100();
  a100.compute_major = 8, a100.multiprocessors = 108, a100.clock_mhz = 1410;
  EXPECT_NEAR(nominal_flops_per_second(a100) * 1e-12, 19.5, 0.1);
}

TEST(KernelTableTest, LimitIsALaunchAndTheLongerOfArithmeticAndTraffic) {
  KernelCase kernel = row(1, {}, {}).kernel;
  EXPECT_DOUBLE_EQ(limit_seconds(kernel, kLimits), 1e-6 + 0.75e-6);
  kernel.bytes = 8e6;
  EXPECT_DOUBLE_EQ(limit_seconds(kernel, kLimits), 1e-6 + 2e-6);
}

TEST(KernelTableTest, LineHasTimesRatesAndRatios) {
  const std::string line = table_line(row(2, 5, 1.5), kLimits);
  for (const std::string text :
       {"conv2 forward", " 2.00 ", " 1.75 ", " 22500 ", " 400 ", " 5.00 ", " 2.50 ", " 1.50 ", " 0.75"}) {
    EXPECT_NE(line.find(text), std::string::npos) << text << " in: " << line;
  }
  EXPECT_EQ(line.size(), table_header().size());
}

TEST(KernelTableTest, MissingRivalsAreDashes) {
  const std::string line = table_line(row(2, {}, {}), kLimits);
  EXPECT_NE(line.find("|         -      - |         -      -"), std::string::npos) << line;
  EXPECT_EQ(line.size(), table_header().size());
}

TEST(KernelTableTest, VerdictNamesWhatIsSlowerThanTheFasterRival) {
  EXPECT_EQ(verdict({row(2, {}, {})}), "");
  EXPECT_EQ(verdict({row(2, 5, {}), row(2, {}, 2)}), "native is at least as fast on all 2 ops compared");
  const std::string text = verdict({row(2, 5, 1.5)});
  EXPECT_NE(text.find("conv2 forward (0.75)"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::bench
