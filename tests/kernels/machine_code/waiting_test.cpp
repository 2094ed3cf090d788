// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The checker of kernels that may begin early itself, on PTX and instructions that were made up.
#include "tests/kernels/machine_code/program.hpp"

#include <gtest/gtest.h>

namespace lockstep::machine_code {
namespace {

// As nvdisasm -hex shows them.
constexpr Instruction kParameter = {0x00000a00ff017b82, 0x000fe20000000800};  // LDC R1, c[0x0][0x28]
constexpr Instruction kThread = {0x0000000000097919, 0x000e220000002500};     // S2R R9, SR_CTAID.X
constexpr Instruction kWait = {0x000000000000782e, 0x000fe20000000000};       // ACQBULK
constexpr Instruction kStart = {0x000000000000782d, 0x000fca0000000000};      // PREEXIT
constexpr Instruction kLoad = {0x0000000402037981, 0x000ea2000c1e1900};       // LDG.E R3, [R2.64]
constexpr Instruction kConstant = {0x0000000402037981, 0x000ea2000c1e9900};   // LDG.E.CONSTANT R3, [R2.64]
constexpr Instruction kStore = {0x0000000502007986, 0x000fe2000c101904};      // STG.E [R2.64], R5
constexpr Instruction kAtomic = {0x000000060400098e, 0x000000000010e580};     // RED.E.ADD.64
constexpr Instruction kExit = {0x000000000000094d, 0x000fea0003800000};       // @P0 EXIT
constexpr Instruction kBranch = {0xfffffffc00f48947, 0x3ffff};                // BRA -0x30

std::vector<std::string> findings_of_code(std::vector<Instruction> code) {
  CubinKernel kernel;
  kernel.symbol = "relu";
  kernel.capability = 90;
  kernel.instructions = std::move(code);
  return findings_of_waiting(kernel);
}

std::vector<std::string> findings_of_ptx(std::vector<std::string> operations) {
  return findings_of_waiting(PtxKernel{"relu", std::move(operations), 90});
}

TEST(WaitingTest, AKernelThatWaitsFirstPasses) {
  EXPECT_EQ(findings_of_code({kParameter, kThread, kWait, kStart, kExit, kLoad, kStore, kAtomic, kBranch}),
            std::vector<std::string>{});
  EXPECT_EQ(findings_of_ptx({"ld.param.u64", "griddepcontrol.wait", "griddepcontrol.launch_dependents", "bra",
                             "ld.global.f32", "st.global.f32"}),
            std::vector<std::string>{});
}

TEST(WaitingTest, AKernelThatNeverWaitsIsNamed) {
  EXPECT_EQ(findings_of_code({kParameter, kLoad, kStore}),
            std::vector<std::string>{"relu (9.0): does not await the kernels before it"});
  EXPECT_EQ(findings_of_ptx({"ld.param.u64", "ret"}),
            std::vector<std::string>{"relu (9.0): PTX: does not await the kernels before it"});
}

TEST(WaitingTest, WhatCouldTouchMemoryOrGoElsewhereMayNotStandBefore) {
  for (const Instruction& early : {kLoad, kStore, kAtomic, kExit, kBranch})
    EXPECT_EQ(findings_of_code({kParameter, early, kWait}).size(), 1U) << std::hex << early.low;
  for (const char* early : {"ld.global.f32", "ld.f32", "st.global.f32", "red.global.add.u64",
                            "atom.global.add.u32", "ret", "bra", "call.uni", "prefetch.global.L2"})
    EXPECT_EQ(findings_of_ptx({"ld.param.u64", early, "griddepcontrol.wait"}).size(), 1U) << early;
  EXPECT_EQ(findings_of_code({kLoad, kWait}),
            std::vector<std::string>{
                "relu (9.0): instruction 0, LDG: before the kernels ahead of this one have ended"});
}

TEST(WaitingTest, LoadsThroughTheCacheForConstantsMayStandNowhere) {
  EXPECT_EQ(findings_of_code({kWait, kLoad, kConstant}).size(), 1U);
  EXPECT_EQ(findings_of_ptx({"griddepcontrol.wait", "ld.global.nc.v4.u32"}).size(), 1U);
}

}  // namespace
}  // namespace lockstep::machine_code
