// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The GPU's side of "one arithmetic on every device", read from the program as it was built: in no kernel's PTX or machine
/// code is there an approximation, a flushed denormal number or a fused addition that the source did not ask for. So what
/// the emulator computes, where a host compiler made the same sources, is what a GPU computes.
#include "program.hpp"

#include "findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace lockstep::machine_code {
namespace {

constexpr int kFirstKnown = 70, kLastKnown = 90;  ///< whose machine code is looked at

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LOCKSTEP_BUILT_WITH_CUDA) GTEST_SKIP() << "built without CUDA: the program has no kernels for GPUs";
    const char* const file = std::getenv("LOCKSTEP_PROGRAM");
    ASSERT_NE(file, nullptr) << "LOCKSTEP_PROGRAM names no program";
    try {
      program_ = read_program(file);
    } catch (const Unreadable& reason) {
      GTEST_SKIP() << reason.what();
    }
  }

  Program program_;
};

std::string lines_of(const std::vector<std::string>& findings) {
  std::string text;
  for (const std::string& finding : findings) text += finding + "\n";
  return text;
}

TEST_F(ProgramTest, HoldsMachineCodeForTheA100AndTheH100AndPtxForAllOthers) {
  if (!LOCKSTEP_DEFAULT_GPUS)
    GTEST_SKIP() << "built for other GPUs: CMAKE_CUDA_ARCHITECTURES or CUDAARCHS is set";
  std::set<int> cubins_for;
  for (const CubinKernel& kernel : program_.cubins) cubins_for.insert(kernel.capability);
  EXPECT_EQ(cubins_for, (std::set<int>{80, 90}));
  EXPECT_EQ(program_.ptx_for,
            std::vector<int>{75});  // The driver compiles it for this one and all newer ones.
  for (const int capability : cubins_for) {
    const auto of_it =
        std::count_if(program_.cubins.begin(), program_.cubins.end(),
                      [&](const CubinKernel& kernel) { return kernel.capability == capability; });
    EXPECT_EQ(of_it, static_cast<std::ptrdiff_t>(program_.ptx.size())) << capability;
  }
}

TEST_F(ProgramTest, PtxHasTheArithmeticOfTheSource) {
  EXPECT_GT(program_.ptx.size(), 100U);
  std::vector<std::string> findings;
  for (const PtxKernel& kernel : program_.ptx) {
    const std::vector<std::string> more = findings_in(kernel);
    findings.insert(findings.end(), more.begin(), more.end());
  }
  EXPECT_EQ(lines_of(findings), "");
}

TEST_F(ProgramTest, PtxComesWithTheOptionThatForbidsTheDriverToFuse) {
  for (const std::string& options : program_.ptx_options)
    EXPECT_NE(options.find("--fmad false"), std::string::npos);
}

TEST_F(ProgramTest, MachineCodeHasTheArithmeticOfThePtx) {
  int kernels = 0;
  std::vector<std::string> findings;
  for (const CubinKernel& kernel : program_.cubins) {
    if (kernel.capability < kFirstKnown || kernel.capability > kLastKnown) continue;
    const PtxKernel* const ptx = program_.ptx_of(kernel.symbol);
    ASSERT_NE(ptx, nullptr) << kernel.symbol;
    EXPECT_FALSE(kernel.instructions.empty()) << kernel.symbol;
    const std::vector<std::string> more = findings_in(kernel, *ptx);
    findings.insert(findings.end(), more.begin(), more.end());
    ++kernels;
  }
  if (kernels == 0) GTEST_SKIP() << "there is no machine code for compute capability 7.0 to 9.0";
  EXPECT_EQ(lines_of(findings), "");
}

/// As it should be in a loop over channels and taps: were instructions read wrongly, there would be none.
TEST_F(ProgramTest, ChainsOfConvolutionsAreFmasInMachineCode) {
  for (const CubinKernel& kernel : program_.cubins) {
    if (kernel.capability < kFirstKnown || kernel.capability > kLastKnown) continue;
    if (readable(kernel.symbol).rfind("convolve_directly<5, false, 4, 10,", 0) != 0) continue;
    const auto fmas = std::count_if(kernel.instructions.begin(), kernel.instructions.end(),
                                    [](const Instruction& i) { return i.is(Operation::kFfma); });
    EXPECT_GE(fmas, 5 * 5 * 2 * 4 * 10);
  }
}

}  // namespace
}  // namespace lockstep::machine_code
