// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench kernels` on GPUs: what it does where there is none.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lockstep::testing {
namespace {

TEST(BenchKernelsTest, EmulatedDeviceRunsEveryOpAndSaysThatItsTimesMeanNothing) {
  const Outcome outcome = lockstep("bench kernels --device emulated");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.everything();
  for (const std::string text : {"times mean nothing", "Without vendor kernels", "net gather",
                                 "net conv2 weight gradient", "lenet conv2 data gradient, relu avg_pool",
                                 "lenet loss", "lenet update", "lenet avg_pool of 50x9x9 backward"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " is missing in\n" << outcome.out;
  }
}

TEST(BenchKernelsTest, FilterAndBatchChooseWhatIsRun) {
  const Outcome outcome =
      lockstep("bench kernels --device emulated --filter 'lenet fc2' --batch 3 --grain 2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_NE(outcome.out.find("lenet, batch 3, grain 2"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("conv"), std::string::npos) << outcome.out;
}

TEST(BenchKernelsTest, WithoutAGpuOneLineSaysSo) {
  const Outcome outcome = lockstep("bench kernels --device cuda --rounds 1 --filter 'net fc2'");
  if (outcome.exit_code == 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(outcome.exit_code, 69) << outcome.everything();
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(BenchKernelsTest, CpuTakesWholeVectorsOfSamples) {
  const Outcome outcome = lockstep("bench kernels --batch 24");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.everything();
  EXPECT_NE(outcome.err.find("multiple of 16"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace lockstep::testing
