// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Engines of 16-bit integers on a processor that has none of them: what it lacks is done in memory.
#pragma once

#include "tests/kernels/reference/memory_tiles.hpp"

namespace lockstep::cpu::int16 {

/// kVnni with the intrinsics of avx512_in_memory.hpp.
extern const Engine kVnniInMemory;

}  // namespace lockstep::cpu::int16

namespace lockstep::reference {

inline std::vector<const cpu::int16::Engine*> engines_in_memory() {
  std::vector<const cpu::int16::Engine*> engines = {&kAmxInMemory};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0)
    engines.push_back(&cpu::int16::kVnniInMemory);
#endif
  return engines;
}

}  // namespace lockstep::reference
