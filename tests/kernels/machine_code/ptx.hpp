// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kernels of a PTX text, as lists of what each statement does, and what in them would not be the arithmetic of the
/// source (docs/arithmetic.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::machine_code {

struct PtxKernel {
  std::string symbol;                   ///< mangled
  std::vector<std::string> operations;  ///< "fma.rn.f32", one for each statement

  /// How many begin so: "fma.rn.f32", or "div." for all divisions.
  int count(std::string_view beginning) const;
};

std::vector<PtxKernel> kernels_of_ptx(std::string_view text);

/// A kernel as people write it: without namespaces and their hashes; with its template arguments and parameters.
std::string readable(const std::string& symbol);

/// One line for each operation that is forbidden everywhere or in this kernel: "KERNEL: OPERATION: why".
///
/// PTX lets a compiler fuse `mul.f32` and `add.f32`, but not `mul.rn.f32` and `add.rn.f32` (PTX ISA, "Rounding
/// modifiers"), so each that lacks its rounding is named, and each fma in a kernel whose source has none.
std::vector<std::string> findings_in(const PtxKernel& kernel);

}  // namespace lockstep::machine_code
