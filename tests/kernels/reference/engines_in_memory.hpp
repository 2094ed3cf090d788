// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Engines of 16-bit integers on processors that lack them. Tiles of "amx" are in memory: all is tested but ten
/// intrinsics (kernels/cpu/int16/amx.cpp). So are vectors of "vnni" (avx512_in_memory.hpp).
#pragma once

#include "kernels/cpu/int16/amx_gradient_inl.hpp"
#include "kernels/cpu/int16/amx_product_inl.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::cpu::int16 {

/// kVnni with vectors in memory.
extern const Engine kVnniInMemory;

}  // namespace lockstep::cpu::int16

namespace lockstep::reference {

/// Does what amx.cpp's tiles do, as Intel's manual defines their instructions.
class MemoryTiles {
 public:
  static void begin() { is_in_use() = true; }
  static void end() { is_in_use() = false; }

  void clear() { std::memset(sums_, 0, sizeof sums_); }
  void add(const cpu::int16::Word* a, const cpu::int16::Word* high, const cpu::int16::Word* low) {
    if (!is_in_use()) ADD_FAILURE() << "tiles are used outside of begin() and end()";
    multiply(sums_[0], a, high);
    multiply(sums_[1], a, low);
    multiply(sums_[2], a + cpu::int16::kTile, high);
    multiply(sums_[3], a + cpu::int16::kTile, low);
  }
  void store(std::int32_t (*parts)[cpu::int16::kTile]) const { std::memcpy(parts, sums_, sizeof sums_); }

  /// tdpbssd: sums[m][n] += a[m][4 k + i] b[k][4 n + i], signed bytes. Most tiles of tests are part empty.
  static void multiply(std::int32_t* sums, const void* a, const void* b) {
    cpu::int16::Word rows[kRows][kRows], any[kRows] = {};
    std::int8_t columns[kRows][kRows][4];
    std::memcpy(rows, a, sizeof rows);
    std::memcpy(columns, b, sizeof columns);
    for (const auto& row : rows)
      for (int k = 0; k < kRows; ++k) any[k] |= row[k];
    for (int k = 0; k < kRows; ++k) {
      if (any[k] == 0) continue;
      Floats terms[4];
      for (int n = 0; n < kRows; ++n)
        for (int i = 0; i < 4; ++i) terms[i][n] = columns[k][n][i];
      for (int m = 0; m < kRows; ++m) {
        if (rows[m][k] == 0) continue;
        Floats products = {};
        for (int i = 0; i < 4; ++i) {
          const float digit = static_cast<std::int8_t>(rows[m][k] >> (8 * i));
          products += digit * terms[i];
        }
        Integers sum;
        std::memcpy(&sum, sums + m * kRows, sizeof sum);
        sum += __builtin_convertvector(products, Integers);
        std::memcpy(sums + m * kRows, &sum, sizeof sum);
      }
    }
  }

 private:
  static constexpr int kRows = 16;
  using Floats = float __attribute__((vector_size(64)));  ///< exact for sums of four products
  using Integers = std::int32_t __attribute__((vector_size(64)));

  static bool& is_in_use() {
    static thread_local bool is = false;
    return is;
  }

  std::int32_t sums_[4][kRows * kRows] = {};
};

inline const cpu::int16::Engine kAmxInMemory = {"amx", [] { return true; },
                                                cpu::int16::correlate_on_tiles<MemoryTiles>,
                                                cpu::int16::sum_gradients_on_tiles<MemoryTiles>};

inline std::vector<const cpu::int16::Engine*> engines_in_memory() {
  std::vector<const cpu::int16::Engine*> engines = {&kAmxInMemory};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0)
    engines.push_back(&cpu::int16::kVnniInMemory);
#endif
  return engines;
}

}  // namespace lockstep::reference
