// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution in 16-bit integers, drawn at random, and its results by plain loops in 64-bit integers,
/// straight from the definition.
#pragma once

#include "tests/kernels/reference/layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::int16_test {

using Numbers = std::vector<float>;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The smallest e >= -149 with largest <= 32639 2^e.
inline int exponent_of(float largest) {
  int e = -149;
  while (double{largest} > std::ldexp(32639.0, e)) ++e;
  return e;
}

/// Numbers as integers of units that columns of a tensor have, 0 in those that are padding.
struct Rounded {
  std::vector<std::int64_t> q;
  std::vector<long double> units;  ///< one for each column; NaN: it has a number that is not finite
};

inline Rounded round(const Numbers& numbers, int batch, int samples, bool have_one_unit = false) {
  const auto columns = static_cast<std::size_t>(batch), used = static_cast<std::size_t>(samples);
  std::vector<float> largest(columns);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (i % columns < used)
      largest[i % columns] =
          std::isfinite(numbers[i]) ? std::max(largest[i % columns], std::abs(numbers[i])) : HUGE_VALF;
  if (have_one_unit) std::ranges::fill(largest, std::ranges::max(largest));
  Rounded rounded{std::vector<std::int64_t>(numbers.size()), std::vector<long double>(columns, kNan)};
  for (std::size_t n = 0; n < used; ++n) {
    if (!std::isfinite(largest[n])) continue;
    const int exponent = exponent_of(largest[n]);
    rounded.units[n] = std::ldexp(1.0L, exponent);
    for (std::size_t i = n; i < numbers.size(); i += columns)
      rounded.q[i] = std::llrint(std::ldexp(double{numbers[i]}, -exponent));
  }
  return rounded;
}

/// Rounded once.
inline float as_float(std::int64_t total, long double unit) {
  return static_cast<float>(static_cast<long double>(total) * unit);
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

inline Results room_for(const Problem& p) {
  return {Numbers(p.dy.size()), Numbers(p.x.size()), Numbers(p.w.size()), Numbers(p.b.size())};
}

/// By the definition. Columns that are padding are 0.
inline Results by_definition(const Problem& p) {
  const Conv2dShape& s = p.shape;
  const auto batch = static_cast<std::size_t>(s.batch), channel = p.dy.size() / p.b.size();
  Results results = room_for(p);
  std::vector<std::int64_t> y(p.dy.size()), dx(p.x.size()), dw(p.w.size()), db(p.b.size());
  const Rounded w = round(p.w, 1, 1), x = round(p.x, s.batch, p.samples),
                dy = round(p.dy, s.batch, p.samples), all_x = round(p.x, s.batch, p.samples, true),
                all_dy = round(p.dy, s.batch, p.samples, true);
  reference::for_each_product(s, [&](std::size_t in_x, std::size_t tap, std::size_t in_y) {
    y[in_y] += x.q[in_x] * w.q[tap];
    dx[in_x] += dy.q[in_y] * w.q[tap];
    dw[tap] += all_dy.q[in_y] * all_x.q[in_x];
  });
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!is_padding(p, i)) results.y[i] = as_float(y[i], x.units[i % batch] * w.units[0]) + p.b[i / channel];
    db[i / channel] += all_dy.q[i];
  }
  for (std::size_t i = 0; i < dx.size(); ++i)
    if (!is_padding(p, i)) results.dx[i] = as_float(dx[i], dy.units[i % batch] * w.units[0]);
  for (std::size_t i = 0; i < dw.size(); ++i)
    results.dw[i] = as_float(dw[i], all_x.units[0] * all_dy.units[0]);
  for (std::size_t k = 0; k < db.size(); ++k) results.db[k] = as_float(db[k], all_dy.units[0]);
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
