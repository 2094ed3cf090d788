// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A grain's gradient as several terms, each of which is rounded to fixed point by itself (GradientSplit in
/// kernels/numerics/sum_cuts.hpp says why and how many).
#pragma once

#include <cstddef>

namespace lockstep {

/// Where an op writes the terms of a layer's gradients: term t at dw + t * term_stride and db + t * term_stride.
struct GradientOutput {
  float* dw = nullptr;
  float* db = nullptr;
  std::size_t term_stride = 0;
};

/// Terms that the caller adds up: [count], `stride` apart.
struct GradientTerms {
  const float* first = nullptr;
  int count = 1;
  std::size_t stride = 0;

  const float* term(int t) const { return first + static_cast<std::size_t>(t) * stride; }
};

}  // namespace lockstep
