// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution by naive loops in double precision: the oracle of the convolution kernels.
#pragma once

#include "kernels/shapes.hpp"
#include "tests/kernels/reference/sums.hpp"

#include <cstddef>
#include <vector>

namespace lockstep::reference {

/// Calls f(x index, w index, y index) for each product x * w that output y consists of.
template <class F>
void for_each_conv2d_product(const Conv2dShape& s, F f) {
  const auto at = [](std::size_t a, int size, int i) {
    return a * static_cast<std::size_t>(size) + static_cast<std::size_t>(i);
  };
  for (int k = 0; k < s.out_channels; ++k)
    for (int p = 0; p < s.out_height(); ++p)
      for (int q = 0; q < s.out_width(); ++q)
        for (int c = 0; c < s.in_channels; ++c)
          for (int r = 0; r < s.kernel_height; ++r)
            for (int t = 0; t < s.kernel_width; ++t) {
              const int h = p * s.stride - s.padding + r, w = q * s.stride - s.padding + t;
              if (h < 0 || h >= s.in_height || w < 0 || w >= s.in_width) continue;
              const std::size_t weight =
                  at(at(at(k, s.in_channels, c), s.kernel_height, r), s.kernel_width, t);
              const std::size_t x = at(at(at(c, s.in_height, h), s.in_width, w), s.batch, 0);
              const std::size_t y = at(at(at(k, s.out_height(), p), s.out_width(), q), s.batch, 0);
              for (std::size_t n = 0; n < static_cast<std::size_t>(s.batch); ++n) f(x + n, weight, y + n);
            }
}

inline Sums conv2d_forward(const Conv2dShape& s, const std::vector<double>& x, const std::vector<double>& w,
                           const std::vector<double>& b) {
  Sums y(s.out_size());
  const std::size_t plane = s.out_size() / b.size();
  for (std::size_t i = 0; i < y.value.size(); ++i) y.add(i, b[i / plane]);
  for_each_conv2d_product(s,
                          [&](std::size_t xi, std::size_t wi, std::size_t yi) { y.add(yi, x[xi] * w[wi]); });
  return y;
}

inline Sums conv2d_backward_data(const Conv2dShape& s, const std::vector<double>& dy,
                                 const std::vector<double>& w) {
  Sums dx(s.in_size());
  for_each_conv2d_product(
      s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dx.add(xi, dy[yi] * w[wi]); });
  return dx;
}

inline Sums conv2d_backward_weights(const Conv2dShape& s, const std::vector<double>& x,
                                    const std::vector<double>& dy) {
  Sums dw(s.weight_size());
  for_each_conv2d_product(
      s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { dw.add(wi, dy[yi] * x[xi]); });
  return dw;
}

inline Sums conv2d_backward_bias(const Conv2dShape& s, const std::vector<double>& dy) {
  Sums db(static_cast<std::size_t>(s.out_channels));
  const std::size_t plane = dy.size() / db.value.size();
  for (std::size_t i = 0; i < dy.size(); ++i) db.add(i / plane, dy[i]);
  return db;
}

}  // namespace lockstep::reference
