// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What in a kernel's machine code would not be the arithmetic of its PTX (ptx.hpp), and so not that of the source.
#pragma once

#include "cubin.hpp"
#include "ptx.hpp"

#include <string>
#include <vector>

namespace lockstep::machine_code {

/// One line for each: "KERNEL (9.0): instruction 12, FFMA: why".
///
/// Divisions and square roots that round correctly are sequences: they start from an approximation (MUFU), and fused
/// multiply-adds make it exact; a routine behind the kernel takes what the sequence cannot. So these are permitted where
/// PTX has such an operation, and nowhere else.
std::vector<std::string> findings_in(const CubinKernel& kernel, const PtxKernel& ptx);

}  // namespace lockstep::machine_code
