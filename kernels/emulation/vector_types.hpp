// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CUDA's built-in vector types, with its alignments.
#pragma once

namespace lockstep::emulation {

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  // NOLINTNEXTLINE(google-explicit-constructor): as CUDA's
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};

// NAME2 {x, y} and NAME4 {x, y, z, w} of TYPE, and make_NAME2, make_NAME4.
#define LOCKSTEP_VECTOR_TYPES(NAME, TYPE)                             \
  struct alignas(2 * sizeof(TYPE)) NAME##2 {                          \
    TYPE x, y;                                                        \
  };                                                                  \
  struct alignas(sizeof(TYPE) == 8 ? 16 : 4 * sizeof(TYPE)) NAME##4 { \
    TYPE x, y, z, w;                                                  \
  };                                                                  \
  constexpr NAME##2 make_##NAME##2(TYPE x, TYPE y) {                  \
    return {x, y};                                                    \
  }                                                                   \
  constexpr NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) {  \
    return {x, y, z, w};                                              \
  }

LOCKSTEP_VECTOR_TYPES(char, signed char)
LOCKSTEP_VECTOR_TYPES(uchar, unsigned char)
LOCKSTEP_VECTOR_TYPES(short, short)
LOCKSTEP_VECTOR_TYPES(ushort, unsigned short)
LOCKSTEP_VECTOR_TYPES(int, int)
LOCKSTEP_VECTOR_TYPES(uint, unsigned)
LOCKSTEP_VECTOR_TYPES(longlong, long long)
LOCKSTEP_VECTOR_TYPES(ulonglong, unsigned long long)
LOCKSTEP_VECTOR_TYPES(float, float)
LOCKSTEP_VECTOR_TYPES(double, double)
#undef LOCKSTEP_VECTOR_TYPES

// The built-in variables of a kernel: those of the thread that runs now on this OS thread.

extern constinit thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;
inline constexpr int warpSize = 32;

}  // namespace lockstep::emulation
