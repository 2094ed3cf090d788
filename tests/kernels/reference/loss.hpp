// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Log-softmax and cross-entropy by naive loops in double: the oracle of the kernels.
#pragma once

#include "kernels/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::reference {

inline std::size_t logit_index(const LossShape& s, int c, int n) {
  return static_cast<std::size_t>(c) * static_cast<std::size_t>(s.batch) + static_cast<std::size_t>(n);
}

inline std::vector<double> log_softmax(const LossShape& s, const std::vector<double>& logits) {
  std::vector<double> y(logits.size());
  for (int n = 0; n < s.batch; ++n) {
    double peak = logits[logit_index(s, 0, n)];
    for (int c = 1; c < s.classes; ++c) peak = std::max(peak, logits[logit_index(s, c, n)]);
    double sum = 0;
    for (int c = 0; c < s.classes; ++c) sum += std::exp(logits[logit_index(s, c, n)] - peak);
    for (int c = 0; c < s.classes; ++c)
      y[logit_index(s, c, n)] = logits[logit_index(s, c, n)] - peak - std::log(sum);
  }
  return y;
}

/// The loss summed over the real samples.
inline double cross_entropy(const LossShape& s, const std::vector<double>& logits,
                            const std::vector<std::int32_t>& labels) {
  const std::vector<double> y = log_softmax(s, logits);
  double loss = 0;
  for (int n = 0; n < s.samples; ++n) loss -= y[logit_index(s, labels[static_cast<std::size_t>(n)], n)];
  return loss;
}

/// softmax - onehot for real samples, 0 in padding columns.
inline std::vector<double> cross_entropy_gradient(const LossShape& s, const std::vector<double>& logits,
                                                  const std::vector<std::int32_t>& labels) {
  std::vector<double> gradient = log_softmax(s, logits);
  for (int n = 0; n < s.batch; ++n)
    for (int c = 0; c < s.classes; ++c) {
      double& value = gradient[logit_index(s, c, n)];
      if (n < s.samples) {
        value = std::exp(value) - (labels[static_cast<std::size_t>(n)] == c ? 1 : 0);
      } else {
        value = 0;
      }
    }
  return gradient;
}

}  // namespace lockstep::reference
