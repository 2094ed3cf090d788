// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The checker of machine code itself, on instructions that were put together by hand as nvdisasm -hex shows them.
#include "findings.hpp"

#include <gtest/gtest.h>

namespace lockstep::machine_code {
namespace {

constexpr Instruction kAddFloats = {0x0000000203007221, 0x0000000000000000};    // FADD R0, R3, R2
constexpr Instruction kFlushingAdd = {0x0000000203007221, 0x0000000000010000};  // FADD.FTZ R0, R3, R2
constexpr Instruction kAddUpwards = {0x0000000203007221, 0x0000000000008000};   // FADD.RP R0, R3, R2
constexpr Instruction kFused = {0x0000000203007223, 0x0000000000000005};        // FFMA R0, R3, R2, R5
constexpr Instruction kReciprocal = {0x0000000000007308, 0x0000000000001000};   // MUFU.RCP R0, R0
constexpr Instruction kExponential = {0x0000000000007308, 0x0000000000000800};  // MUFU.EX2 R0, R0
constexpr Instruction kMoveConstant = {0x00000000ff037435,
                                       0x00000000000001ff};                    // HFMA2.MMA R3, -RZ, RZ, 0, 0
constexpr Instruction kHalfFma = {0x0000000004037435, 0x0000000000000106};     // HFMA2.MMA R3, R4, ..., R6
constexpr Instruction kAddInteger = {0x000000060400098e, 0x000000000010e580};  // RED.E.ADD.64
constexpr Instruction kAddFloatAtom = {0x000000060400098e, 0x000000000010e780};  // RED.E.ADD.F32.FTZ.RN
constexpr Instruction kTensor = {0x000000040808723c, 0x0000000000001808};        // HMMA.16816.F32

std::vector<std::string> findings_of(const Instruction& instruction, std::vector<std::string> ptx,
                                     bool in_routine = false) {
  CubinKernel kernel;
  kernel.symbol = "relu";
  kernel.capability = 90;
  kernel.instructions = {instruction};
  if (in_routine) kernel.routines = {{"$__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath", 0, 1}};
  return findings_in(kernel, {"relu", std::move(ptx)});
}

TEST(MachineCodeTest, PlainArithmeticPasses) {
  for (const Instruction& instruction : {kAddFloats, kMoveConstant, kAddInteger})
    EXPECT_EQ(findings_of(instruction, {}), std::vector<std::string>{});
}

TEST(MachineCodeTest, EachForbiddenInstructionIsSeen) {
  for (const Instruction& instruction :
       {kFlushingAdd, kAddUpwards, kFused, kReciprocal, kExponential, kHalfFma, kAddFloatAtom, kTensor})
    EXPECT_EQ(findings_of(instruction, {}).size(), 1U)
        << std::hex << instruction.low << ' ' << instruction.high;
}

TEST(MachineCodeTest, NamesKernelPlaceAndReason) {
  EXPECT_EQ(findings_of(kFused, {"mul.rn.f32", "add.rn.f32"}),
            std::vector<std::string>{"relu (9.0): instruction 0, FFMA: fused, where PTX is not"});
}

TEST(MachineCodeTest, FmasPassWherePtxHasThem) {
  EXPECT_EQ(findings_of(kFused, {"fma.rn.f32"}), std::vector<std::string>{});
}

TEST(MachineCodeTest, AnApproximationPassesWhereADivisionBegins) {
  EXPECT_EQ(findings_of(kReciprocal, {"div.rn.f32"}), std::vector<std::string>{});
  EXPECT_EQ(findings_of(kReciprocal, {"div.s32"}), std::vector<std::string>{});
  EXPECT_EQ(findings_of(kReciprocal, {"sqrt.rn.f64"}).size(), 1U);
  EXPECT_EQ(findings_of(kExponential, {"div.rn.f32"}).size(), 1U);
}

TEST(MachineCodeTest, RoutinesPassIfTheyRoundCorrectly) {
  EXPECT_EQ(findings_of(kFlushingAdd, {"rcp.rn.f32"}, /*in_routine=*/true), std::vector<std::string>{});
  CubinKernel kernel;
  for (const char* exact :
       {"$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath", "$__cuda_sm20_div_rn_f64_full",
        "$__cuda_sm20_dsqrt_rn_f64_mediumpath_v1", "$__cuda_sm20_dblrcp_rn_slowpath_v3",
        "$__cuda_sm20_sqrt_rn_f32_slowpath", "$__cuda_sm20_div_u64", "$__cuda_sm20_rem_s64"}) {
    kernel.routines = {{exact, 0, 0}};
    EXPECT_EQ(findings_in(kernel, {}), std::vector<std::string>{});
  }
  for (const char* rough : {"$__cuda_sm20_div_rn_ftz_f32_slowpath", "$__cuda_sm3x_div_full_f32"}) {
    kernel.routines = {{rough, 0, 0}};
    EXPECT_EQ(findings_in(kernel, {}).size(), 1U) << rough;
  }
}

TEST(MachineCodeTest, LoopsAreFound) {
  const Instruction nop = {0x0000000000007918, 0},
                    back_2 = {0xfffffffc00f48947, 0x3ffff};  // BRA -0x30, of 9.0
  const std::vector<Loop> loops = loops_of({nop, kFused, kFused, back_2, nop}, 90);
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].first, 1U);
  EXPECT_EQ(loops[0].last, 3U);
}

}  // namespace
}  // namespace lockstep::machine_code
