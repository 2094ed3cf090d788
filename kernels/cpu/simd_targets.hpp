// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The instruction sets that the CPU kernels are compiled for. Include this before any Highway header.
///
/// On x86-64: AVX-512 ("AVX3"), AVX2, SSE4 and plain scalar code. The last two fuse multiply-adds by
/// software (multiply_add_inl.hpp). On Arm: NEON. Each further one would compile every kernel once more and gain
/// nothing here; vectors whose length is unknown to the compiler (SVE, RVV) cannot live in arrays. Every translation
/// unit must see the same list, or its dispatch tables would differ.
#pragma once

#ifdef HIGHWAY_HWY_DETECT_TARGETS_H_
#error "include kernels/cpu/simd_targets.hpp before the headers of Highway"
#endif

#undef HWY_DISABLED_TARGETS
#ifdef LOCKSTEP_SANITIZED  // sanitizers find in AVX2 and plain code what is in the others: vectors and ends
#define LOCKSTEP_TOO_SLOW_FOR_SANITIZERS (HWY_SSE4 | HWY_AVX3)
#else
#define LOCKSTEP_TOO_SLOW_FOR_SANITIZERS 0
#endif
#define HWY_DISABLED_TARGETS                                                             \
  (HWY_AVX3_DL | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | \
   LOCKSTEP_TOO_SLOW_FOR_SANITIZERS)
