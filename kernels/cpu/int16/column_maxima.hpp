// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The largest numbers of a tensor's columns, which set the units of 16-bit integers: found once, read by several ops.
#pragma once

#include <cstdint>
#include <utility>

namespace lockstep::cpu {

/// Bits of the largest magnitude in each column of one tensor. Bits of magnitudes have the order of these; NaN is the
/// largest. Padding columns may hold anything. Borrows its memory.
struct ColumnMaxima {
  std::uint32_t* bits = nullptr;  ///< [batch]
  bool are_found = false;
};

/// Memory for a pass that finds them, and from then on they count as found. Null: they are not wanted, or found already.
inline std::uint32_t* to_find(ColumnMaxima* maxima) {
  if (maxima == nullptr || std::exchange(maxima->are_found, true)) return nullptr;
  return maxima->bits;
}

/// A tensor [features, batch] that is an operand, and its maxima, which the first op that needs them finds.
struct Operand {
  const float* numbers = nullptr;
  ColumnMaxima* maxima = nullptr;  ///< null: each op finds them for itself

  Operand(const float* of, ColumnMaxima* found = nullptr) : numbers(of), maxima(found) {}
};

}  // namespace lockstep::cpu
