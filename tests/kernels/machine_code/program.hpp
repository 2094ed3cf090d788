// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A program's kernels, as PTX and for each compute capability as machine code.
#pragma once

#include "ptx.hpp"
#include "tests/kernels/machine_code/cubin.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::machine_code {

struct Program {
  std::vector<int> ptx_for;              ///< compute capabilities, each once
  std::vector<std::string> ptx_options;  ///< of each PTX image, for the driver's compiler
  std::vector<PtxKernel> ptx;
  std::vector<CubinKernel> cubins;

  /// The PTX of a kernel; nullptr if there is none.
  const PtxKernel* ptx_of(const std::string& symbol) const;
};

/// @throws what images_of() and kernels_of_cubin() throw
Program read_program(const std::filesystem::path& file);

// What in a kernel's machine code would not be the arithmetic of its PTX (ptx.hpp), and so not that of the source.

/// One line for each: "KERNEL (9.0): instruction 12, FFMA: why".
///
/// Divisions and square roots that round correctly are sequences: they start from an approximation (MUFU), and fused
/// multiply-adds make it exact; a routine behind the kernel takes what the sequence cannot. So these are permitted
/// where PTX has such an operation, and nowhere else.
std::vector<std::string> findings_in(const CubinKernel& kernel, const PtxKernel& ptx);

}  // namespace lockstep::machine_code
