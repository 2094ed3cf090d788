// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pooling by naive loops in double: the oracle of the kernels.
#pragma once

#include "kernels/shapes.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace lockstep::reference {

/// Calls body(y_index, tap, x_index) for every tap inside the image of every window, sample by sample.
template <class Body>
void for_each_pool_tap(const Pool2dShape& s, const Body& body) {
  for (int c = 0; c < s.channels; ++c)
    for (int p = 0; p < s.out_height(); ++p)
      for (int q = 0; q < s.out_width(); ++q)
        for (int tap = 0; tap < s.kernel * s.kernel; ++tap)
          for (int n = 0; n < s.batch; ++n) {
            const int h = p * s.stride - s.padding + tap / s.kernel;
            const int w = q * s.stride - s.padding + tap % s.kernel;
            if (h < 0 || h >= s.in_height || w < 0 || w >= s.in_width) continue;
            const int y = ((c * s.out_height() + p) * s.out_width() + q) * s.batch + n;
            const int x = ((c * s.in_height + h) * s.in_width + w) * s.batch + n;
            body(static_cast<std::size_t>(y), tap, static_cast<std::size_t>(x));
          }
}

struct MaxPooled {
  std::vector<double> y;
  std::vector<std::uint8_t> argmax;
};

inline MaxPooled max_pool_forward(const Pool2dShape& s, const std::vector<double>& x) {
  MaxPooled result{std::vector<double>(s.out_size()), std::vector<std::uint8_t>(s.out_size())};
  std::vector<bool> started(s.out_size());
  for_each_pool_tap(s, [&](std::size_t y, int tap, std::size_t from) {
    if (started[y] && !(x[from] > result.y[y]) && !std::isnan(x[from])) return;
    started[y] = true;
    result.y[y] = x[from];
    result.argmax[y] = static_cast<std::uint8_t>(tap);
  });
  return result;
}

inline std::vector<double> max_pool_backward(const Pool2dShape& s, const std::vector<double>& dy,
                                             const std::vector<std::uint8_t>& argmax) {
  std::vector<double> dx(s.in_size());
  for_each_pool_tap(s, [&](std::size_t y, int tap, std::size_t to) {
    if (argmax[y] == tap) dx[to] += dy[y];
  });
  return dx;
}

inline std::vector<double> avg_pool_forward(const Pool2dShape& s, const std::vector<double>& x) {
  std::vector<double> result(s.out_size());
  for_each_pool_tap(
      s, [&](std::size_t y, int, std::size_t from) { result[y] += x[from] / (s.kernel * s.kernel); });
  return result;
}

inline std::vector<double> avg_pool_backward(const Pool2dShape& s, const std::vector<double>& dy) {
  std::vector<double> dx(s.in_size());
  for_each_pool_tap(s, [&](std::size_t y, int, std::size_t to) { dx[to] += dy[y] / (s.kernel * s.kernel); });
  return dx;
}

}  // namespace lockstep::reference
