// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The GPU's side of "one arithmetic on every device", read from the program as it was built. In no kernel's PTX or
/// machine code is there an approximation, a flushed denormal number or a fused addition that the source did not ask
/// for. So what the emulator computes, where a host compiler made the same sources, is what a GPU computes.
#include "tests/kernels/machine_code/program.hpp"

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::machine_code {

namespace {

/// Range of machine code that is read. Newer processors have other operations: of those there is the PTX.
constexpr int kFirstKnown = 70, kLastKnown = 90;

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

TEST_F(ProgramTest, HoldsMachineCodeForServersFromTheA100OnAndPtxForAllOthers) {
  if (!LOCKSTEP_DEFAULT_GPUS)
    GTEST_SKIP() << "built for other GPUs: CMAKE_CUDA_ARCHITECTURES or CUDAARCHS is set";
  std::set<int> cubins_for;
  for (const CubinKernel& kernel : program_.cubins) cubins_for.insert(kernel.capability);
  EXPECT_EQ(cubins_for,
            LOCKSTEP_DEFAULT_GPUS == 2 ? (std::set<int>{80, 90, 100, 120}) : (std::set<int>{80, 90}));
  // The driver compiles the one for 7.5 and 8.x, the other for all newer ones.
  EXPECT_EQ(std::set<int>(program_.ptx_for.begin(), program_.ptx_for.end()), (std::set<int>{75, 90}));
  const auto count = [](const auto& kernels, int capability) {
    return std::count_if(kernels.begin(), kernels.end(),
                         [&](const auto& kernel) { return kernel.capability == capability; });
  };
  for (const int capability : cubins_for)
    EXPECT_EQ(count(program_.cubins, capability), count(program_.ptx, capability < 90 ? 75 : 90))
        << capability;
}

TEST_F(ProgramTest, PtxHasTheArithmeticOfTheSource) {
  EXPECT_GT(program_.ptx.size(), 100U);
  std::string findings;
  for (const PtxKernel& kernel : program_.ptx)
    for (const std::string& finding : findings_in(kernel)) findings += finding + "\n";
  EXPECT_EQ(findings, "");
}

TEST_F(ProgramTest, PtxComesWithTheOptionThatForbidsTheDriverToFuse) {
  for (const std::string& options : program_.ptx_options) EXPECT_TRUE(contains(options, {"--fmad false"}));
}

TEST_F(ProgramTest, MachineCodeHasTheArithmeticOfThePtx) {
  int kernels = 0;
  std::string findings;
  for (const CubinKernel& kernel : program_.cubins) {
    if (kernel.capability < kFirstKnown || kernel.capability > kLastKnown) continue;
    const PtxKernel* const ptx = program_.ptx_of(kernel);
    ASSERT_NE(ptx, nullptr) << kernel.symbol;
    EXPECT_FALSE(kernel.instructions.empty()) << kernel.symbol;
    for (const std::string& finding : findings_in(kernel, *ptx)) findings += finding + "\n";
    ++kernels;
  }
  if (kernels == 0) GTEST_SKIP() << "there is no machine code for compute capability 7.0 to 9.0";
  EXPECT_EQ(findings, "");
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

// The checker of machine code itself, on instructions that were put together by hand as nvdisasm -hex shows them.

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

TEST(MachineCodeTest, InstructionsPassWherePtxHasThem) {
  struct Row {
    Instruction instruction;
    std::vector<std::string> ptx;
    std::size_t findings;
  };
  const Row rows[] = {
      {kAddFloats, {}, 0},
      {kMoveConstant, {}, 0},
      {kAddInteger, {}, 0},
      {kFlushingAdd, {}, 1},
      {kAddUpwards, {}, 1},
      {kFused, {}, 1},
      {kFused, {"fma.rn.f32"}, 0},
      {kReciprocal, {}, 1},
      {kReciprocal, {"div.rn.f32"}, 0},
      {kReciprocal, {"div.s32"}, 0},
      {kReciprocal, {"sqrt.rn.f64"}, 1},
      {kExponential, {"div.rn.f32"}, 1},
      {kExponential, {}, 1},
      {kHalfFma, {}, 1},
      {kAddFloatAtom, {}, 1},
      {kTensor, {}, 1},
  };
  for (const Row& row : rows)
    EXPECT_EQ(findings_of(row.instruction, row.ptx).size(), row.findings) << &row - rows;
}

TEST(MachineCodeTest, NamesKernelPlaceAndReason) {
  EXPECT_EQ(findings_of(kFused, {"mul.rn.f32", "add.rn.f32"}),
            std::vector<std::string>{"relu (9.0): instruction 0, FFMA: fused, where PTX is not"});
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

// The checker of PTX itself, on PTX that was made up: it must see each instruction that could change bits.

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
