// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CUDA's built-in vector types that kernels use, with its alignments, and the built-in variables of a kernel.
#pragma once

namespace lockstep::emulation {

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  // NOLINTNEXTLINE(google-explicit-constructor): as CUDA's
  constexpr dim3(unsigned vx, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

// The built-in variables of a kernel: those of the thread that runs now on this OS thread.

extern constinit thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

}  // namespace lockstep::emulation
