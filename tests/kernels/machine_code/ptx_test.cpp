// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The checker of PTX itself, on PTX that was made up: it must see each instruction that could change bits.
#include "ptx.hpp"

#include <gtest/gtest.h>

namespace lockstep::machine_code {
namespace {

/// A module with one kernel of this name, which does what kernels do, and `statement`.
std::vector<std::string> findings_with(const std::string& statement, const std::string& kernel = "relu") {
  const std::string text =
      "//\n.version 9.0\n.target sm_75\n.address_size 64\n\n"
      ".visible .entry " +
      kernel + "(\n\t.param .u64 " + kernel +
      "_param_0\n)\n.maxntid 128, 1, 1\n{\n"
      "\t.reg .pred \t%p<2>;\n\t.reg .f32 \t%f<4>;\n\n"
      "\tld.param.u64 \t%rd1, [" +
      kernel +
      "_param_0];\n"
      "\tld.global.nc.f32 \t%f1, [%rd1];\n"
      "\tadd.rn.f32 \t%f2, %f1, 0f00000000;\n"
      "\tmax.f32 \t%f3, %f2, %f1;\n"
      "$L__BB0_1:\n"
      "\t" +
      statement +
      "\n"
      "\tred.global.add.u64 \t[%rd1], 1;\n"
      "\t@%p1 bra \t$L__BB0_1;\n\tret;\n}\n";
  const std::vector<PtxKernel> kernels = kernels_of_ptx(text);
  EXPECT_EQ(kernels.size(), 1U);
  return findings_in(kernels.at(0));
}

TEST(PtxTest, KernelsAreFoundWithTheirOperations) {
  const auto kernels = kernels_of_ptx(
      ".visible .entry one(\n\t.param .u64 p\n)\n{\n\tmul.rn.f32 \t%f1, %f2, %f3;\n\t@!%p1 fma.rn.f32 \t%f1, "
      "%f2, "
      "%f3, %f1;\n\tret;\n}\n.entry two()\n{\n\tbar.sync \t0;\n\tret;\n}\n");
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].symbol, "one");
  EXPECT_EQ(kernels[0].operations, (std::vector<std::string>{"mul.rn.f32", "fma.rn.f32", "ret"}));
  EXPECT_EQ(kernels[0].count("fma."), 1);
  EXPECT_EQ(kernels[1].operations, (std::vector<std::string>{"bar.sync", "ret"}));
}

TEST(PtxTest, RoundedArithmeticPasses) {
  for (const char* statement :
       {"mul.rn.f32 \t%f1, %f2, %f3;", "div.rn.f32 \t%f1, %f2, %f3;", "sqrt.rn.f64 \t%d1, %d2;",
        "cvt.rni.f32.f32 \t%f1, %f2;", "cvt.rzi.s32.f32 \t%r1, %f2;", "cvt.f64.f32 \t%d1, %f2;",
        "cvt.rni.s64.f64 \t%rd2, %d2;", "neg.f32 \t%f1, %f2;", "setp.gt.f32 \t%p1, %f1, %f2;",
        "atom.global.add.u32 \t%r1, [%rd1], 1;", "mad.lo.s32 \t%r1, %r2, %r3, %r4;"})
    EXPECT_EQ(findings_with(statement), std::vector<std::string>{}) << statement;
}

TEST(PtxTest, EachForbiddenOperationIsSeen) {
  for (const char* statement :
       {"mul.f32 \t%f1, %f2, %f3;",
        "add.f32 \t%f1, %f2, %f3;",
        "sub.f64 \t%d1, %d2, %d3;",
        "add.rz.f32 \t%f1, %f2, %f3;",
        "fma.rn.f32 \t%f1, %f2, %f3, %f1;",
        "mad.f32 \t%f1, %f2, %f3, %f1;",
        "fma.rn.f64 \t%d1, %d2, %d3, %d1;",
        "@%p1 fma.rn.f32 \t%f1, %f2, %f3, %f1;",
        "mul.rn.ftz.f32 \t%f1, %f2, %f3;",
        "max.ftz.f32 \t%f1, %f2, %f3;",
        "setp.gt.ftz.f32 \t%p1, %f1, %f2;",
        "add.rn.sat.f32 \t%f1, %f2, %f3;",
        "div.approx.f32 \t%f1, %f2, %f3;",
        "div.full.f32 \t%f1, %f2, %f3;",
        "rcp.approx.ftz.f64 \t%d1, %d2;",
        "sqrt.approx.f32 \t%f1, %f2;",
        "rsqrt.approx.f32 \t%f1, %f2;",
        "ex2.approx.f32 \t%f1, %f2;",
        "lg2.approx.f32 \t%f1, %f2;",
        "sin.approx.f32 \t%f1, %f2;",
        "tanh.approx.f32 \t%f1, %f2;",
        "cvt.rn.f32.f64 \t%f1, %d1;",
        "cvt.rz.f32.f64 \t%f1, %d1;",
        "cvt.rn.f16.f32 \t%rs1, %f1;",
        "cvt.rna.tf32.f32 \t%r1, %f1;",
        "fma.rn.f16x2 \t%r1, %r2, %r3, %r4;",
        "red.global.add.f32 \t[%rd1], %f1;",
        "atom.global.add.f64 \t%d1, [%rd1], %d2;",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 \t{%f1}, {%r1}, {%r2}, {%f1};",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \t{%f1}, {%r1}, {%r2}, {%f1};",
        "{ fma.rn.f32 %f1, %f2, %f3, %f1; }"})
    EXPECT_EQ(findings_with(statement).size(), 1U) << statement;
}

TEST(PtxTest, AnFmaPassesWhereTheSourceHasOne) {
  const std::string chain =
      "_ZN8lockstep4cuda41_GLOBAL__N__84352532_9_linear_cu_b6eabb8914forward_kernelILi2ELi1EEEvPf";
  EXPECT_EQ(readable(chain), "forward_kernel<2, 1>(float*)");
  EXPECT_EQ(findings_with("fma.rn.f32 \t%f1, %f2, %f3, %f1;", chain), std::vector<std::string>{});
  EXPECT_EQ(findings_with("cvt.rn.f32.f64 \t%f1, %d1;", chain).size(), 1U);
}

}  // namespace
}  // namespace lockstep::machine_code
