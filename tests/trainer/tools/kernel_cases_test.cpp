// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/tools/kernel_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::bench {

namespace {

std::vector<KernelCase> cases_of(const std::string& model, int batch = 64) {
  return kernel_cases(Network::load(model, {1, 28, 28}, 10), batch);
}

std::vector<std::string> names_of(const std::vector<KernelCase>& cases) {
  std::vector<std::string> names;
  for (const KernelCase& kernel : cases) names.push_back(kernel.name);
  return names;
}

TEST(KernelCasesTest, NetHasEveryOpOfAStepInItsOrderAndThenTheFusedParts) {
  const std::vector<std::string> expected = {
      "net gather",
      "net conv1 forward, max_pool relu",
      "net conv2 forward, dropout2d max_pool relu",
      "net fc1 forward, relu dropout",
      "net fc2 forward, loss, data gradient",
      "net fc2 weight gradient",
      "net fc1 weight gradient",
      "net fc1 data gradient, dropout2d max_pool relu",
      "net conv2 weight gradient",
      "net conv2 data gradient, max_pool relu",
      "net conv1 weight gradient",
      "net update",
  };
  auto names = names_of(cases_of("net"));
  ASSERT_GE(names.size(), expected.size());
  const std::vector<std::string> parts(names.begin() + static_cast<std::ptrdiff_t>(expected.size()),
                                       names.end());
  names.resize(expected.size());
  EXPECT_EQ(names, expected);
  EXPECT_EQ(parts.size(), 3U + 2U * (3 + 2))
      << "three that are one launch; three epilogues and two pools, forward and backward";
}

TEST(KernelCasesTest, NamesAreUnique) {
  for (const std::string model : {"net", "lenet", "mlp", "linear"}) {
    auto names = names_of(cases_of(model));
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << model;
  }
}

double flops_of(const std::string& model) {
  double flops = 0;
  for (const KernelCase& kernel : cases_of(model, 64)) {
    flops += kernel.flops;
    if (kernel.name.ends_with(" update")) break;  // parts follow
  }
  return flops;
}

TEST(KernelCasesTest, ArithmeticIsThatOfTrainingTheNetworkWithoutWhatPoolsDrop) {
  const auto of_network = [](const std::string& model) {
    return 64 * Network::load(model, {1, 28, 28}, 10).training_flops_per_sample();
  };
  for (const std::string model : {"net", "mlp"})
    EXPECT_DOUBLE_EQ(flops_of(model), of_network(model)) << model;
  const double dropped = 3 * 64 * 2.0 * 50 * 20 * 25 * (9 * 9 - 8 * 8);  // conv2's
  EXPECT_DOUBLE_EQ(flops_of("lenet"), of_network("lenet") - dropped);
}

TEST(KernelCasesTest, TrafficIsEachTensorOnce) {
  for (const KernelCase& kernel : cases_of("net", 64)) {
    if (kernel.name == "net conv1 forward, max_pool relu") {
      EXPECT_EQ(kernel.bytes, 4.0 * 784 * 64 + 5.0 * 1440 * 64 + 4.0 * 260);
    } else if (kernel.name == "net fc2 weight gradient") {
      EXPECT_EQ(kernel.bytes, 4.0 * 60 * 64 + 16.0 * 510);
    } else if (kernel.name == "net update") {
      EXPECT_EQ(kernel.bytes, 32.0 * 21840);
    }
  }
}

TEST(KernelCasesTest, GeneralPoolsAndWholeModelsWithoutConvolutionsHaveCasesToo) {
  EXPECT_EQ(names_of(cases_of("linear")).front(), "linear gather");
  EXPECT_EQ(cases_of("mlp", 3).front().batch, 3);
}

}  // namespace

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
