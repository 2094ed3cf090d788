// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fully connected layers by naive loops in double precision: the oracle of the linear kernels.
#pragma once

#include "kernels/shapes.hpp"
#include "tests/kernels/reference/sums.hpp"

#include <cstddef>
#include <vector>

namespace lockstep::reference {

/// Calls f(x index, w index, y index) for each product x * w that output y consists of.
template <class F>
void for_each_linear_product(const LinearShape& s, F f) {
  const auto inputs = static_cast<std::size_t>(s.in_features),
             outputs = static_cast<std::size_t>(s.out_features);
  const auto batch = static_cast<std::size_t>(s.batch);
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t i = 0; i < inputs; ++i)
      for (std::size_t n = 0; n < batch; ++n) f(i * batch + n, o * inputs + i, o * batch + n);
}

inline Sums linear_forward(const LinearShape& s, const std::vector<double>& x, const std::vector<double>& w,
                           const std::vector<double>& b) {
  const auto batch = static_cast<std::size_t>(s.batch);
  Sums y(b.size() * batch);
  for (std::size_t i = 0; i < y.value.size(); ++i) y.add(i, b[i / batch]);
  for_each_linear_product(s,
                          [&](std::size_t xi, std::size_t wi, std::size_t yi) { y.add(yi, x[xi] * w[wi]); });
  return y;
}

inline Sums linear_backward_data(const LinearShape& s, const std::vector<double>& dy,
                                 const std::vector<double>& w) {
  Sums dx(static_cast<std::size_t>(s.in_features) * static_cast<std::size_t>(s.batch));
  for_each_linear_product(
      s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dx.add(xi, dy[yi] * w[wi]); });
  return dx;
}

inline Sums linear_backward_weights(const LinearShape& s, const std::vector<double>& x,
                                    const std::vector<double>& dy) {
  Sums dw(s.weight_size());
  for_each_linear_product(
      s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dw.add(wi, dy[yi] * x[xi]); });
  return dw;
}

inline Sums linear_backward_bias(const LinearShape& s, const std::vector<double>& dy) {
  Sums db(static_cast<std::size_t>(s.out_features));
  for (std::size_t i = 0; i < dy.size(); ++i) db.add(i / static_cast<std::size_t>(s.batch), dy[i]);
  return db;
}

}  // namespace lockstep::reference
