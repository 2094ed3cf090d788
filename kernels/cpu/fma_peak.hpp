// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The speed limit that the kernels are measured against.
#pragma once

namespace lockstep::cpu {

/// FLOP/s that one core reaches in fused multiply-adds between registers, with the instruction set the
/// kernels use here. Takes about `seconds`; the best of many short slices, since other programs may share the
/// core.
double measure_fma_peak(double seconds);

}  // namespace lockstep::cpu
