// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The instruction set of the kernels, and its speed. It is the widest one of the processor, or another one on
/// demand. All compute the same bits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cpu {

/// The variable that names it for a command.
inline constexpr const char* kSimdVariable = "LOCKSTEP_SIMD";

/// The instruction set in use: "AVX-512", "AVX2", "SSE4", "NEON" or "portable".
std::string simd_name();

/// Instruction sets of this processor, the best one first: of "avx512", "avx2", "sse4", "neon" and "portable".
std::vector<std::string> simd_choices();

/// From now on kernels use this one. Call before any of them runs, at most once; an empty name changes nothing.
/// @throws UsageError  there is no such instruction set; DeviceError  this processor does not have it
void choose_simd(std::string_view name);

/// True if the one in use has an instruction for fused multiply-add. Without, it is computed by several.
bool simd_fuses();

/// The kernels' speed limit: FLOP/s of one core in fused multiply-adds between registers, with the
/// instruction set in use. Takes about `seconds`; the best of many short slices, since other programs may share the
/// core.
double measure_fma_peak(double seconds);

}  // namespace lockstep::cpu
