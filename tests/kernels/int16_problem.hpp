// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A convolution in 16-bit integers, drawn at random, and its results by loops in 64-bit integers, which follow the
/// definition and nothing else.
#pragma once

#include "kernels/shapes.hpp"
#include "tests/support/prelude.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace lockstep::int16_test {

using Numbers = std::vector<float>;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The smallest e >= -149 with largest <= 32639 2^e.
inline int exponent_of(float largest) {
  int e = -149;
  while (double{largest} > std::ldexp(32639.0, e)) ++e;
  return e;
}

/// Integers of numbers that share a unit.
struct Rounded {
  std::vector<std::int64_t> q;
  int exponent = 0;
  bool is_finite = true;
};

/// Rounds the numbers at first, first + step, ...; one unit.
inline Rounded round_some(const Numbers& numbers, std::size_t first, std::size_t step) {
  Rounded rounded;
  float largest = 0;
  for (std::size_t i = first; i < numbers.size(); i += step) {
    rounded.is_finite = rounded.is_finite && std::isfinite(numbers[i]);
    largest = std::max(largest, std::abs(numbers[i]));
  }
  if (!rounded.is_finite) return rounded;
  rounded.exponent = exponent_of(largest);
  for (std::size_t i = first; i < numbers.size(); i += step)
    rounded.q.push_back(std::llrint(std::ldexp(double{numbers[i]}, -rounded.exponent)));
  return rounded;
}

inline float round_once(std::int64_t total, int exponent) {
  return static_cast<float>(std::ldexp(static_cast<long double>(total), exponent));
}

/// A call with its operands, [channel][row][column][sample].
struct Problem {
  Conv2dShape shape;
  int samples = 0;
  Numbers x = {}, w = {}, b = {}, dy = {};
};

/// True of a number in x or dy that is of no sample.
inline bool is_padding(const Problem& p, std::size_t i) {
  return i % static_cast<std::size_t>(p.shape.batch) >= static_cast<std::size_t>(p.samples);
}

struct Results {
  Numbers y, dx, dw, db;
};

/// Calls use(tap, place in y, place in x) for all products of one sample.
template <class Use>
void for_each_product(const Conv2dShape& s, const Use& use) {
  const int read_height = s.read_height(), read_width = s.read_width();
  for (int k = 0; k < s.out_channels; ++k) {
    for (int of_group = 0; of_group < s.group_inputs(); ++of_group) {
      const int c = k / s.group_outputs() * s.group_inputs() + of_group;
      for (int p = 0; p < read_height; ++p) {
        for (int q = 0; q < read_width; ++q) {
          for (int r = 0; r < s.kernel_height; ++r) {
            for (int t = 0; t < s.kernel_width; ++t) {
              const int h = p * s.stride - s.padding + r * s.dilation,
                        w = q * s.stride - s.padding + t * s.dilation;
              if (h < 0 || h >= s.in_height || w < 0 || w >= s.in_width) continue;
              const int tap = ((k * s.group_inputs() + of_group) * s.kernel_height + r) * s.kernel_width + t;
              use(tap, (k * s.out_height() + p) * s.out_width() + q, (c * s.in_height + h) * s.in_width + w);
            }
          }
        }
      }
    }
  }
}

/// Numbers of the first samples, one sample after the other.
inline Numbers of_samples(const Numbers& numbers, int batch, int samples) {
  Numbers some;
  for (int n = 0; n < samples; ++n)
    for (std::size_t i = static_cast<std::size_t>(n); i < numbers.size();
         i += static_cast<std::size_t>(batch))
      some.push_back(numbers[i]);
  return some;
}

inline Results room_for(const Problem& p) {
  return {Numbers(p.dy.size()), Numbers(p.x.size()), Numbers(p.w.size()), Numbers(p.b.size())};
}

/// By the definition. Columns that are padding are 0.
inline Results by_definition(const Problem& p) {
  const Conv2dShape& s = p.shape;
  const auto batch = static_cast<std::size_t>(s.batch);
  Results results = room_for(p);
  const Rounded w = round_some(p.w, 0, 1);
  for (std::size_t n = 0; n < static_cast<std::size_t>(p.samples); ++n) {
    const Rounded x = round_some(p.x, n, batch), dy = round_some(p.dy, n, batch);
    std::vector<std::int64_t> y(p.dy.size() / batch), dx(p.x.size() / batch);
    for_each_product(s, [&](int tap, int in_y, int in_x) {
      if (w.is_finite && x.is_finite)
        y[static_cast<std::size_t>(in_y)] +=
            x.q[static_cast<std::size_t>(in_x)] * w.q[static_cast<std::size_t>(tap)];
      if (w.is_finite && dy.is_finite)
        dx[static_cast<std::size_t>(in_x)] +=
            dy.q[static_cast<std::size_t>(in_y)] * w.q[static_cast<std::size_t>(tap)];
    });
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t channel = i / (y.size() / static_cast<std::size_t>(s.out_channels));
      results.y[i * batch + n] =
          (w.is_finite && x.is_finite ? round_once(y[i], x.exponent + w.exponent) : kNan) + p.b[channel];
    }
    for (std::size_t i = 0; i < dx.size(); ++i)
      results.dx[i * batch + n] =
          w.is_finite && dy.is_finite ? round_once(dx[i], dy.exponent + w.exponent) : kNan;
  }
  const Rounded x = round_some(of_samples(p.x, s.batch, p.samples), 0, 1),
                dy = round_some(of_samples(p.dy, s.batch, p.samples), 0, 1);
  const std::size_t x_size = p.x.size() / batch, y_size = p.dy.size() / batch;
  std::vector<std::int64_t> dw(p.w.size()), db(static_cast<std::size_t>(s.out_channels));
  if (x.is_finite && dy.is_finite) {
    for (std::size_t n = 0; n < static_cast<std::size_t>(p.samples); ++n)
      for_each_product(s, [&](int tap, int in_y, int in_x) {
        dw[static_cast<std::size_t>(tap)] += dy.q[n * y_size + static_cast<std::size_t>(in_y)] *
                                             x.q[n * x_size + static_cast<std::size_t>(in_x)];
      });
  }
  for (std::size_t i = 0; i < dw.size(); ++i)
    results.dw[i] = x.is_finite && dy.is_finite ? round_once(dw[i], x.exponent + dy.exponent) : kNan;
  for (std::size_t i = 0; i < dy.q.size(); ++i) db[i % y_size / (y_size / db.size())] += dy.q[i];
  for (std::size_t k = 0; k < db.size(); ++k)
    results.db[k] = dy.is_finite ? round_once(db[k], dy.exponent) : kNan;
  return results;
}

/// Any NaN is like any other.
inline std::string first_difference(const char* what, const Numbers& expected, const Numbers& actual) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i] + 0.0F) != std::bit_cast<std::uint32_t>(actual[i] + 0.0F))
      return fmt::format("{}[{}] is {:a}, not {:a}; ", what, i, actual[i], expected[i]);
  }
  return "";
}

/// Numbers of a kind: small ones, of many magnitudes, subnormal ones, mostly zeros, or with one that is huge.
inline Numbers draw(std::mt19937& random, std::size_t size, int kind) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-60, 20), one_of_eight(0, 7);
  Numbers numbers(size);
  for (float& number : numbers) {
    number = normal(random);
    if (kind == 1) number = std::ldexp(number, exponent(random));
    if (kind == 2) number = std::ldexp(number, -140);
    if (kind == 3 && one_of_eight(random) > 0) number = 0;
  }
  if (kind == 4 && size > 0) numbers[random() % size] = 1e30F;
  if (kind == 5) std::ranges::fill(numbers, 0.0F);
  if (kind == 6 && size > 0) numbers[random() % size] = random() % 2 == 0 ? kNan : HUGE_VALF;
  return numbers;
}

inline void fill(Problem& p, std::mt19937& random, const std::vector<int>& kinds) {
  const auto kind = [&] { return kinds[random() % kinds.size()]; };
  p.x = draw(random, p.shape.in_size(), kind());
  p.w = draw(random, p.shape.weight_size(), kind());
  p.b = draw(random, static_cast<std::size_t>(p.shape.out_channels), 0);
  p.dy = draw(random, p.shape.out_size(), kind());
  for (Numbers* numbers : {&p.x, &p.dy})  // padding is finite, whatever it is
    for (std::size_t i = 0; i < numbers->size(); ++i)
      if (is_padding(p, i)) (*numbers)[i] = 0.75F;
  // A pool that reads a part of y gives the rest no gradient.
  const Conv2dShape& s = p.shape;
  const auto batch = static_cast<std::size_t>(s.batch), width = static_cast<std::size_t>(s.out_width());
  for (std::size_t i = 0; i < p.dy.size(); ++i) {
    const std::size_t pixel = i / batch, row = pixel / width % static_cast<std::size_t>(s.out_height());
    if (row >= static_cast<std::size_t>(s.read_height()) ||
        pixel % width >= static_cast<std::size_t>(s.read_width()))
      p.dy[i] = 0;
  }
}

inline Problem draw_problem(std::mt19937& random) {
  const auto between = [&](int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random);
  };
  for (;;) {
    Problem p;
    Conv2dShape& s = p.shape;
    s.batch = 16 * between(1, 5);
    p.samples = between(1, s.batch);
    s.groups = between(0, 3) > 0 ? 1 : between(2, 3);
    const int more =
        between(0, 5) > 0 ? 0 : 34;  // channels: several vectors of filters, more taps than a sum holds
    s.in_channels = s.groups * between(1, 6 + more);
    s.out_channels = s.groups * between(1, 9 + more);
    s.in_height = between(1, 8);
    s.in_width = between(1, 8);
    s.kernel_height = between(1, 4);
    s.kernel_width = between(1, 4);
    s.stride = between(1, 3);
    s.dilation = between(1, 2);
    s.padding = between(0, std::min(s.reach_height(), s.reach_width()) - 1);
    if (s.reach_height() > s.in_height + 2 * s.padding || s.reach_width() > s.in_width + 2 * s.padding)
      continue;
    if (s.out_height() > 2 && s.out_width() > 2 && between(0, 3) == 0)
      s.read = {s.out_height() - 1, s.out_width() - 1};
    if (s.flops() > 4e6) continue;
    fill(p, random, {0, 0, 1, 2, 3, 4, 5});
    return p;
  }
}

}  // namespace lockstep::int16_test
