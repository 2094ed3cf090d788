// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/bench/kernel_cases.hpp"

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
      "net fc2 forward",
      "net loss",
      "net fc2 weight gradient",
      "net fc2 data gradient, relu dropout",
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
  EXPECT_EQ(parts.size(), 2U * (3 + 2)) << "three epilogues and two pools, forward and backward";
}

TEST(KernelCasesTest, NamesAreUnique) {
  for (const std::string model : {"net", "lenet", "mlp", "linear"}) {
    auto names = names_of(cases_of(model));
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << model;
  }
}

TEST(KernelCasesTest, ArithmeticIsThatOfTrainingTheNetwork) {
  for (const std::string model : {"net", "lenet", "mlp"}) {
    double flops = 0;
    for (const KernelCase& kernel : cases_of(model, 64)) flops += kernel.flops;
    const Network network = Network::load(model, {1, 28, 28}, 10);
    EXPECT_DOUBLE_EQ(flops, 64 * network.training_flops_per_sample()) << model;
  }
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
}  // namespace lockstep::bench
