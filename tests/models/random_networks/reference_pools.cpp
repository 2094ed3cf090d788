// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/models/random_networks/reference_layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

namespace {

/// Calls f(y index, x indices of the window in row-major order) for each window of each sample.
template <class F>
void for_each_window(const Pool2dShape& s, F f) {
  std::vector<std::size_t> window;
  std::size_t y = 0;
  for (int c = 0; c < s.channels; ++c)
    for (int p = 0; p < s.out_height(); ++p)
      for (int q = 0; q < s.out_width(); ++q)
        for (int n = 0; n < s.batch; ++n, ++y) {
          window.clear();
          for (int r = 0; r < s.kernel; ++r)
            for (int t = 0; t < s.kernel; ++t) {
              const int h = p * s.stride - s.padding + r, w = q * s.stride - s.padding + t;
              if (h < 0 || h >= s.in_height || w < 0 || w >= s.in_width) continue;
              window.push_back(
                  static_cast<std::size_t>(((c * s.in_height + h) * s.in_width + w) * s.batch + n));
            }
          f(y, window);
        }
}

std::size_t first_largest(const Bounded& x, const std::vector<std::size_t>& window) {
  return *std::max_element(window.begin(), window.end(),
                           [&](std::size_t a, std::size_t b) { return x.value[a] < x.value[b]; });
}

/// Rounding may make i larger than the largest. Equal numbers that fp32 has exactly are no tie: the first
/// wins.
bool may_win(const Bounded& x, std::size_t i, std::size_t largest) {
  const double sigma = std::sqrt(x.variance[i]) + std::sqrt(x.variance[largest]);
  return i != largest && sigma > 0 && x.value[largest] - x.value[i] <= Bounded::kSigmas * sigma;
}

}  // namespace

Bounded max_pool_forward(const Pool2dShape& s, const Bounded& x) {
  Bounded y(s.out_size());
  for_each_window(s, [&](std::size_t to, const std::vector<std::size_t>& window) {
    const std::size_t largest = first_largest(x, window);
    y.value[to] = x.value[largest];
    y.variance[to] = x.variance[largest];
    for (const std::size_t i : window) {
      if (may_win(x, i, largest)) y.variance[to] = std::max(y.variance[to], x.variance[i]);
    }
  });
  return y;
}

Bounded max_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy, std::int64_t& ties) {
  Bounded dx(x.size());
  for_each_window(s, [&](std::size_t from, const std::vector<std::size_t>& window) {
    const std::size_t largest = first_largest(x, window);
    bool tied = false;
    for (const std::size_t i : window) {
      if (!may_win(x, i, largest)) continue;
      tied = true;
      dx.tie[i] += std::abs(dy.value[from]) + dy.allowed(from);
    }
    add_gradient(dx, largest, dy, from, 1);
    if (tied) dx.tie[largest] += std::abs(dy.value[from]) + dy.allowed(from);
    ties += tied ? 1 : 0;
  });
  return dx;
}

Bounded avg_pool_forward(const Pool2dShape& s, const Bounded& x) {
  SumsUnderWay y(s.out_size());
  for_each_window(s, [&](std::size_t to, const std::vector<std::size_t>& window) {
    for (const std::size_t i : window) y.add(to, x, i, 1.0 / (s.kernel * s.kernel));
  });
  return y.take();
}

Bounded avg_pool_backward(const Pool2dShape& s, const Bounded& x, const Bounded& dy) {
  SumsUnderWay dx(x.size());
  for_each_window(s, [&](std::size_t from, const std::vector<std::size_t>& window) {
    for (const std::size_t i : window) dx.add(i, dy, from, 1.0 / (s.kernel * s.kernel));
  });
  return dx.take();
}

namespace {

/// Calls f(y index, x index, share) for each pixel of each window of each sample.
template <class F>
void for_each_adaptive_tap(const AdaptivePoolShape& s, F f) {
  const auto begin = [](int i, int in, int out) { return i * in / out; };
  const auto end = [](int i, int in, int out) {
    return (i + 1) * in / out + ((i + 1) * in % out != 0 ? 1 : 0);
  };
  std::size_t y = 0;
  for (int c = 0; c < s.channels; ++c)
    for (int p = 0; p < s.out_height; ++p)
      for (int q = 0; q < s.out_width; ++q)
        for (int n = 0; n < s.batch; ++n, ++y) {
          const int rows = end(p, s.in_height, s.out_height) - begin(p, s.in_height, s.out_height),
                    columns = end(q, s.in_width, s.out_width) - begin(q, s.in_width, s.out_width);
          for (int r = 0; r < rows; ++r)
            for (int t = 0; t < columns; ++t) {
              const int h = begin(p, s.in_height, s.out_height) + r,
                        w = begin(q, s.in_width, s.out_width) + t;
              f(y, static_cast<std::size_t>(((c * s.in_height + h) * s.in_width + w) * s.batch + n),
                1.0 / (rows * columns));
            }
        }
}

}  // namespace

Bounded adaptive_avg_pool_forward(const AdaptivePoolShape& s, const Bounded& x) {
  SumsUnderWay y(s.out_size());
  for_each_adaptive_tap(s, [&](std::size_t to, std::size_t i, double share) { y.add(to, x, i, share); });
  return y.take();
}

Bounded adaptive_avg_pool_backward(const AdaptivePoolShape& s, const Bounded& x, const Bounded& dy) {
  SumsUnderWay dx(x.size());
  for_each_adaptive_tap(s,
                        [&](std::size_t from, std::size_t i, double share) { dx.add(i, dy, from, share); });
  return dx.take();
}

AdaptivePoolShape whole_channels(const GlobalAvgPoolOp& pool, int batch) {
  return {batch, pool.input.channels, pool.input.height, pool.input.width, 1, 1};
}

Bounded global_avg_pool_backward(const GlobalAvgPoolOp& pool, int batch, const Bounded& x,
                                 const Bounded& dy) {
  Bounded dx = adaptive_avg_pool_backward(whole_channels(pool, batch), x, dy);
  // All pixels of a channel have one number, and so one error. In a sum over them it counts `pixels` times,
  // where errors of their own would count the root of that.
  for (double& variance : dx.variance) variance *= pool.input.height * pool.input.width;
  return dx;
}

}  // namespace lockstep::test
