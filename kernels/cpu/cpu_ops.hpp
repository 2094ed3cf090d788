// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ops on one CPU core, by hand with Google Highway: the widest SIMD of the machine is chosen when the
/// program starts.
#pragma once

#include "kernels/ops.hpp"

#include <memory>
#include <string>

namespace lockstep::cpu {

/// Samples that are processed together: one 64-byte line, a vector of AVX-512, two of AVX2.
inline constexpr int kLanes = 16;

std::unique_ptr<Ops> make_ops();

/// The instruction set in use: "AVX-512", "AVX2", "SSE4", "NEON" or "portable".
std::string simd_name();

}  // namespace lockstep::cpu
