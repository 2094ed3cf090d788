// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A program's kernels, as PTX and for each compute capability as machine code.
#pragma once

#include "tests/kernels/machine_code/cubin.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::machine_code {

// Kernels of a PTX text as lists of statements, and deviations from the arithmetic of the source
// (docs/arithmetic.md).

struct PtxKernel {
  std::string symbol;                   ///< mangled
  std::vector<std::string> operations;  ///< "fma.rn.f32", one for each statement
  int capability = 0;                   ///< target of the front end: 75 for 7.5

  /// How many begin so: "fma.rn.f32", or "div." for all divisions.
  int count(std::string_view beginning) const;
};

std::vector<PtxKernel> kernels_of_ptx(std::string_view text);

/// A kernel as people write it: without namespaces and their hashes; with its template arguments and parameters.
std::string readable(const std::string& symbol);

/// One line for each operation that is forbidden everywhere or in this kernel: "KERNEL: OPERATION: why".
///
/// Findings in a kernel's PTX. It lets a compiler fuse `mul.f32` and `add.f32`, but not `mul.rn.f32` and `add.rn.f32`
/// (PTX ISA, "Rounding modifiers"). Named are those without rounding, and each fma if the source has none.
std::vector<std::string> findings_in(const PtxKernel& kernel);

struct Program {
  std::vector<int> ptx_for;              ///< compute capabilities, each once
  std::vector<std::string> ptx_options;  ///< for the driver's compiler, one for each PTX image
  std::vector<PtxKernel> ptx;
  std::vector<CubinKernel> cubins;

  /// The PTX that a kernel's machine code was made of: of the newest capability that is not above its own. nullptr if
  /// there is none.
  const PtxKernel* ptx_of(const CubinKernel& kernel) const;
};

/// @throws what images_of() and kernels_of_cubin() throw
Program read_program(const std::filesystem::path& file);

// Finds deviations of a kernel's machine code from the arithmetic of its PTX, and so of the source.

/// One line for each: "KERNEL (9.0): instruction 12, FFMA: why".
///
/// Divisions and square roots that round correctly are sequences. They start from an approximation (MUFU),
/// and fused multiply-adds make it exact; a routine behind the kernel takes what the sequence cannot. So
/// these are permitted where PTX has such an operation, and nowhere else.
std::vector<std::string> findings_in(const CubinKernel& kernel, const PtxKernel& ptx);

// Costs of a kernel, as far as its machine code says: without a GPU, and so without its memory.

/// Cost of the loop with most fused multiply-adds, or if none has any, most instructions; inner loops do not
/// count.
struct LoopCost {
  int instructions = 0, fmas = 0;

  /// Instructions, for each fma where there are any.
  double per_fma() const { return fmas > 0 ? 1.0 * instructions / fmas : instructions; }
};
LoopCost loop_cost(const CubinKernel& kernel);

/// How many warps of blocks of `warps` warps have registers and room on a multiprocessor at a time. Their shared
/// memory, which mostly depends on the launch, is not looked at.
int resident_warps(const CubinKernel& kernel, int warps);

/// Warps of the largest block that its launch bounds allow; 8 where there are none.
int warps_of_largest_block(const CubinKernel& kernel);

}  // namespace lockstep::machine_code
