// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The arguments of a matrix product.
#pragma once

#include <cstddef>

namespace lockstep::cpu {

/// c[i][j] = start[i] + sum over d of a(i, d) * b[d][j], for rows i, columns j and depth d: a chain for each `block` of d,
/// blocks added in order. Strides are in floats. Rows of b are readable up to a multiple of kLanes columns; c is
/// written up to `columns`.
struct Product {
  std::size_t rows = 0, columns = 0, depth = 0, block = 0;
  const float* a = nullptr;
  std::ptrdiff_t a_row = 0, a_depth = 0;
  const float* b = nullptr;
  std::ptrdiff_t b_depth = 0;
  float* c = nullptr;
  std::ptrdiff_t c_row = 0;
  const float* start = nullptr;  ///< null: 0
};

}  // namespace lockstep::cpu
