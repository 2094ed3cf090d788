// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The weight gradient of a convolution as one number for each weight, where ops give several terms.
#pragma once

#include "kernels/gradient_terms.hpp"
#include "kernels/numerics/sum_cuts.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace lockstep::test {

/// @param run  called with a GradientOutput; must write all of it
/// @param dw, db  overwritten with the sums of the terms, added up in double
template <class Run>
void sum_terms(const Conv2dShape& shape, int grain, const Run& run, float* dw, float* db) {
  const auto terms = static_cast<std::size_t>(GradientSplit(shape, grain).terms);
  const std::size_t weights = shape.weight_size();
  const std::size_t stride = weights + static_cast<std::size_t>(shape.out_channels);
  std::vector<float> all(terms * stride, NAN);
  run(GradientOutput{all.data(), all.data() + weights, stride});
  for (std::size_t i = 0; i < stride; ++i) {
    double sum = 0;
    for (std::size_t t = 0; t < terms; ++t) sum += static_cast<double>(all[t * stride + i]);
    (i < weights ? dw[i] : db[i - weights]) = static_cast<float>(sum);
  }
}

}  // namespace lockstep::test
