// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine "amx" on tiles in memory, for processors that have none: all of it but ten intrinsics
/// (kernels/cpu/int16/amx.cpp).
#pragma once

#include "kernels/cpu/int16/amx_gradient_inl.hpp"
#include "kernels/cpu/int16/amx_product_inl.hpp"

#include <gtest/gtest.h>

#include <cstring>

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

  /// tdpbssd: sums[m][n] += a[m][4 k + i] b[k][4 n + i], signed bytes.
  static void multiply(std::int32_t* sums, const void* a, const void* b) {
    std::int8_t rows[kRows][kBytes], columns[4][kRows][kRows], of_b[kRows][kBytes];
    std::memcpy(rows, a, sizeof rows);
    std::memcpy(of_b, b, sizeof of_b);
    for (int k = 0; k < kRows; ++k)
      for (int n = 0; n < kRows; ++n)
        for (int i = 0; i < 4; ++i) columns[i][k][n] = of_b[k][4 * n + i];
    for (int m = 0; m < kRows; ++m)
      for (int term = 0; term < kBytes; ++term)
        for (int n = 0; n < kRows; ++n) sums[m * kRows + n] += rows[m][term] * columns[term % 4][term / 4][n];
  }

 private:
  static constexpr int kRows = 16, kBytes = 64;

  static bool& is_in_use() {
    static thread_local bool is = false;
    return is;
  }

  std::int32_t sums_[4][kRows * kRows] = {};
};

inline const cpu::int16::Engine kAmxInMemory = {"amx in memory", [] { return true; },
                                                cpu::int16::correlate_on_tiles<MemoryTiles>,
                                                cpu::int16::sum_gradients_on_tiles<MemoryTiles>};

}  // namespace lockstep::reference
