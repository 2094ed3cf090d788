// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ops in 16-bit integers against loops in 64-bit ones, which follow the definition and nothing else: the same bits on
/// every engine and every instruction set.
#include "common/error.hpp"
#include "kernels/cpu/int16/operands.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/cpu/int16/rounding.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/reference/memory_tiles.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/trapped_tiles.hpp"
#include "tests/support/test_settings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace lockstep::int16_test {
namespace {

namespace int16 = cpu::int16;
using Numbers = std::vector<float>;

/// The smallest e >= -149 with largest <= 32639 2^e.
int exponent_of(float largest) {
  int e = -149;
  while (static_cast<long double>(largest) > std::ldexp(32639.0L, e)) ++e;
  return e;
}

/// Integers of numbers that share a unit.
struct Rounded {
  std::vector<std::int64_t> q;
  int exponent = 0;
  bool is_finite = true;
};

/// Rounds the numbers at first, first + step, ...; one unit.
Rounded round_some(const Numbers& numbers, std::size_t first, std::size_t step) {
  Rounded rounded;
  float largest = 0;
  for (std::size_t i = first; i < numbers.size(); i += step) {
    rounded.is_finite = rounded.is_finite && std::isfinite(numbers[i]);
    largest = std::max(largest, std::abs(numbers[i]));
  }
  if (!rounded.is_finite) return rounded;
  rounded.exponent = exponent_of(largest);
  for (std::size_t i = first; i < numbers.size(); i += step)
    rounded.q.push_back(static_cast<std::int64_t>(
        std::nearbyint(std::ldexp(static_cast<long double>(numbers[i]), -rounded.exponent))));
  return rounded;
}

float round_once(std::int64_t total, int exponent) {
  return static_cast<float>(std::ldexp(static_cast<long double>(total), exponent));
}

/// A call with its operands, [channel][row][column][sample].
struct Problem {
  Conv2dShape shape;
  int samples = 0;
  Numbers x = {}, w = {}, b = {}, dy = {};
};

/// True of a number in x or dy that is of no sample.
bool is_padding(const Problem& p, std::size_t i) {
  return i % static_cast<std::size_t>(p.shape.batch) >= static_cast<std::size_t>(p.samples);
}

struct Results {
  Numbers y, dx, dw, db;
};

/// Calls use(k, c of x, tap, place in y, place in x) for all products of one sample.
void for_each_product(const Conv2dShape& s, const std::function<void(int, int, int, int, int)>& use) {
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
              use(k, c, tap, (k * s.out_height() + p) * s.out_width() + q,
                  (c * s.in_height + h) * s.in_width + w);
            }
          }
        }
      }
    }
  }
}

/// Numbers of the first samples, one sample after the other.
Numbers of_samples(const Numbers& numbers, int batch, int samples) {
  Numbers some;
  for (int n = 0; n < samples; ++n)
    for (std::size_t i = static_cast<std::size_t>(n); i < numbers.size();
         i += static_cast<std::size_t>(batch))
      some.push_back(numbers[i]);
  return some;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Results room_for(const Problem& p) {
  return {Numbers(p.dy.size()), Numbers(p.x.size()), Numbers(p.w.size()), Numbers(p.b.size())};
}

/// By the definition. Columns that are padding are 0.
Results by_definition(const Problem& p) {
  const Conv2dShape& s = p.shape;
  const auto batch = static_cast<std::size_t>(s.batch);
  Results results = room_for(p);
  const Rounded w = round_some(p.w, 0, 1);
  for (std::size_t n = 0; n < static_cast<std::size_t>(p.samples); ++n) {
    const Rounded x = round_some(p.x, n, batch), dy = round_some(p.dy, n, batch);
    std::vector<std::int64_t> y(p.dy.size() / batch), dx(p.x.size() / batch);
    for_each_product(s, [&](int, int, int tap, int in_y, int in_x) {
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
      for_each_product(s, [&](int, int, int tap, int in_y, int in_x) {
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

/// With an odd number of samples the first op that reads an operand finds its maxima for all; otherwise each op its own.
Results by_ops(const Problem& p) {
  const Conv2dShape& s = p.shape;
  Results results = room_for(p);
  std::vector<std::uint32_t> bits(2 * static_cast<std::size_t>(s.batch), 0x7FFFFFFF);
  cpu::ColumnMaxima of_x{bits.data()}, of_dy{bits.data() + s.batch};
  const bool are_kept = p.samples % 2 == 1;
  const cpu::Operand x(p.x.data(), are_kept ? &of_x : nullptr), dy(p.dy.data(), are_kept ? &of_dy : nullptr);
  int16::conv2d_forward(s, p.samples, x, p.w.data(), p.b.data(), results.y.data());
  int16::conv2d_backward_data(s, p.samples, dy, p.w.data(), nullptr, results.dx.data());
  int16::conv2d_backward_weights(s, p.samples, x, dy, results.dw.data());
  int16::bias_gradient(s.out_channels, s.out_height() * s.out_width(), s.batch, p.samples, dy,
                       results.db.data());
  EXPECT_EQ(of_x.are_found && of_dy.are_found, are_kept);
  for (Numbers* numbers : {&results.y, &results.dx})
    for (std::size_t i = 0; i < numbers->size(); ++i)
      if (is_padding(p, i)) (*numbers)[i] = 0;
  return results;
}

/// Any NaN is like any other.
std::string first_difference(const char* what, const Numbers& expected, const Numbers& actual) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i] + 0.0F) != std::bit_cast<std::uint32_t>(actual[i] + 0.0F))
      return fmt::format("{}[{}] is {:a}, not {:a}; ", what, i, actual[i], expected[i]);
  }
  return "";
}

std::string in_words(const Problem& p) {
  const Conv2dShape& s = p.shape;
  return fmt::format(
      "batch {} ({} samples) C {} H {} W {} K {} R {} S {} stride {} padding {} groups {} dilation {} read "
      "{}x{}",
      s.batch, p.samples, s.in_channels, s.in_height, s.in_width, s.out_channels, s.kernel_height,
      s.kernel_width, s.stride, s.padding, s.groups, s.dilation, s.read_height(), s.read_width());
}

void expect_results(const Results& expected, const Results& actual, const std::string& where) {
  EXPECT_EQ(first_difference("y", expected.y, actual.y) + first_difference("dx", expected.dx, actual.dx) +
                first_difference("dw", expected.dw, actual.dw) +
                first_difference("db", expected.db, actual.db),
            "")
      << where;
}

/// On every instruction set with every engine that is there, and with that of AMX on tiles in memory.
void expect_definition(const Problem& p,
                       const std::vector<std::int64_t>& targets = reference::all_targets()) {
  SCOPED_TRACE(in_words(p));
  const Results expected = by_definition(p);
  for (const std::int64_t target : targets) {
    const reference::ForcedTarget forced(target);
    for (const std::string& engine : int16::engine_choices()) {
      int16::choose_engine(engine);
      expect_results(expected, by_ops(p), engine + " on " + hwy::TargetName(target));
    }
  }
  int16::use_engine(reference::kAmxInMemory);
  expect_results(expected, by_ops(p), reference::kAmxInMemory.name);
  int16::choose_engine(int16::engine_choices().front());
}

/// Numbers of a kind: small ones, of many magnitudes, subnormal ones, mostly zeros, or with one that is huge.
Numbers draw(std::mt19937& random, std::size_t size, int kind) {
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

void fill(Problem& p, std::mt19937& random, const std::vector<int>& kinds) {
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

Problem draw_problem(std::mt19937& random) {
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

TEST(Int16Test, RandomShapesHaveTheBitsOfTheDefinition) {
  std::mt19937 random(49);
  for (int i = 0; i < test::effort(1000, 50); ++i) expect_definition(draw_problem(random));
}

/// More channels and filters than a tile has, and such as leave the last one part empty; few enough products to test.
Problem draw_wide_problem(std::mt19937& random) {
  const int channels[] = {15, 16, 17, 32, 48, 64, 65, 96, 130};
  for (;;) {
    Problem p = draw_problem(random);
    Conv2dShape& s = p.shape;
    s.batch = 16;
    p.samples = std::min(p.samples, 16);
    s.in_channels = s.groups * channels[random() % std::size(channels)];
    s.out_channels = s.groups * channels[random() % std::size(channels)];
    if (s.flops() > 3e7) continue;
    fill(p, random, {0, 0, 1, 3});
    return p;
  }
}

TEST(Int16Test, WideLayersHaveTheBitsOfTheDefinition) {
  std::mt19937 random(54);
  for (int i = 0; i < test::effort(50, 5); ++i)
    expect_definition(draw_wide_problem(random), {reference::all_targets().front()});
}

/// On a processor that has them every test above runs on them.
TEST(Int16Test, InstructionsForTilesDoWhatTilesInMemoryDo) {
#if defined(__x86_64__) && defined(__linux__)
  const auto choices = int16::engine_choices();
  if (choices.front() == "amx") GTEST_SKIP() << "this processor has AMX";
  if (cpu::simd_name() != "AVX-512") GTEST_SKIP() << "the engine amx wants AVX-512";
  const reference::TrappedTiles trapped;
  int16::use_engine(int16::kAmx);
  std::mt19937 random(55);
  for (int i = 0; i < 20; ++i) {
    const Problem p = i % 4 == 0 ? draw_wide_problem(random) : draw_problem(random);
    expect_results(by_definition(p), by_ops(p), in_words(p));
    EXPECT_FALSE(reference::TrappedTiles::is_configured());
  }
  EXPECT_GT(reference::TrappedTiles::products(), 1000);
  int16::choose_engine(choices.front());
#else
  GTEST_SKIP() << "AMX is of x86-64";
#endif
}

TEST(Int16Test, NumbersThatAreNotFiniteMakeTheirUnitsResultsNaN) {
  std::mt19937 random(50);
  for (int i = 0; i < 10; ++i) {
    Problem p = draw_problem(random);
    fill(p, random, {0, 6});
    expect_definition(p);
  }
}

/// Sums of 32 bits are as large as they may be, and flushed: 16,384 products of the largest numbers and digits in y,
/// 14,400 in dw.
TEST(Int16Test, LargestNumbersDoNotOverflow) {
  const Conv2dShape many_taps{.batch = 32,
                              .in_channels = 1024,
                              .in_height = 4,
                              .in_width = 4,
                              .out_channels = 2,
                              .kernel_height = 4,
                              .kernel_width = 4};
  const Conv2dShape many_pixels{.batch = 16,
                                .in_channels = 2,
                                .in_height = 30,
                                .in_width = 30,
                                .out_channels = 18,
                                .kernel_height = 1,
                                .kernel_width = 1};
  const Conv2dShape many_samples{.batch = 64,
                                 .in_channels = 2,
                                 .in_height = 12,
                                 .in_width = 11,
                                 .out_channels = 6,
                                 .kernel_height = 1,
                                 .kernel_width = 1};
  for (const auto& [number, weight] : {std::pair{32639.0F, 32639.0F},
                                       {-32639.0F, 32639.0F},
                                       {32639.0F, -128.0F},
                                       {32639.0F, 32511.0F},
                                       {32511.0F, 32639.0F}}) {
    for (const Conv2dShape& shape : {many_taps, many_pixels, many_samples}) {
      Problem p{.shape = shape, .samples = shape.batch};
      p.x.assign(shape.in_size(), number);
      p.w.assign(shape.weight_size(), weight);
      p.w[0] = 32639;  // so that the unit is 1
      p.b.resize(static_cast<std::size_t>(shape.out_channels), 2);
      p.dy.assign(shape.out_size(), weight);
      p.dy[0] = 32639;
      expect_definition(p);
    }
  }
}

/// Beyond 2^17 products of the largest digits: of a target, and of a weight's gradient.
TEST(Int16Test, ManyLargestNumbersDoNotOverflow) {
  const Conv2dShape many_channels{.batch = 16,
                                  .in_channels = test::effort(150000, 20000),
                                  .in_height = 1,
                                  .in_width = 1,
                                  .out_channels = 1,
                                  .kernel_height = 1,
                                  .kernel_width = 1};
  const Conv2dShape many_pixels{.batch = 16,
                                .in_channels = 1,
                                .in_height = test::effort(95, 20),
                                .in_width = 100,
                                .out_channels = 1,
                                .kernel_height = 1,
                                .kernel_width = 1};
  for (const Conv2dShape& shape : {many_channels, many_pixels}) {
    Problem p{.shape = shape, .samples = 16};
    p.x.assign(shape.in_size(), 32639);
    p.w.assign(shape.weight_size(), 32639);
    p.b = {1};
    p.dy.assign(shape.out_size(), 32639);
    expect_definition(p, {reference::all_targets().front()});
  }
}

TEST(Int16Test, ProductsBeyond2To17And2To22AreSummed) {
  std::mt19937 random(51);
  for (const int features : {test::effort((1 << 17) + 3, 1003), test::effort((1 << 22) + 5, (1 << 17) + 5)}) {
    Problem p{.shape = {.batch = 16,
                        .in_channels = features,
                        .in_height = 1,
                        .in_width = 1,
                        .out_channels = 1,
                        .kernel_height = 1,
                        .kernel_width = 1},
              .samples = 3};
    fill(p, random, {0});
    for (float& weight : p.w) weight = std::abs(weight);  // a large sum
    for (float& number : p.x) number = std::abs(number);
    expect_definition(p, {reference::all_targets().front()});
  }
}

/// A gradient sums over pixels.
TEST(Int16Test, LargeImagesHaveExactGradients) {
  std::mt19937 random(52);
  Problem p{.shape = {.batch = 16,
                      .in_channels = 1,
                      .in_height = test::effort(90, 20),
                      .in_width = 250,
                      .out_channels = 5,
                      .kernel_height = 1,
                      .kernel_width = 1},
            .samples = 16};
  fill(p, random, {0});
  expect_definition(p);
}

TEST(Int16Test, SamplesHaveTheirNumbersWhateverIsBesideThem) {
  std::mt19937 random(53);
  Problem together = draw_problem(random);
  together.shape.read = {};
  fill(together, random, {1});
  const auto batch = static_cast<std::size_t>(together.shape.batch);
  const Results expected = by_ops(together);
  for (std::size_t n = 0; n < static_cast<std::size_t>(together.samples); ++n) {
    Problem alone = together;
    alone.shape.batch = 16;
    alone.samples = 1;
    const auto only = [&](const Numbers& numbers) {
      Numbers some(numbers.size() / batch * 16);
      for (std::size_t i = 0; i < numbers.size() / batch; ++i) some[i * 16] = numbers[i * batch + n];
      return some;
    };
    alone.x = only(together.x);
    alone.dy = only(together.dy);
    const Results actual = by_ops(alone);
    for (std::size_t i = 0; i < actual.y.size() / 16; ++i)
      ASSERT_EQ(actual.y[i * 16], expected.y[i * batch + n]);
    for (std::size_t i = 0; i < actual.dx.size() / 16; ++i)
      ASSERT_EQ(actual.dx[i * 16], expected.dx[i * batch + n]);
  }
}

TEST(Int16Test, TotalsThatNoDoubleHoldsAreRoundedOnce) {
  const std::int64_t half = std::int64_t{1} << 61;
  for (const std::int64_t unit :
       {std::int64_t{1} << 38, std::int64_t{1} << 37}) {  // the last bit of a float, and half
    for (const std::int64_t more : {-1, 0, 1}) {
      for (const std::int64_t sign : {-1, 1}) {
        const std::int64_t total = sign * (half + unit + more);
        EXPECT_EQ(int16::round_once(total, 0x1p-30), round_once(total, -30)) << total;
        EXPECT_EQ(int16::round_once(total, 0x1p-208), round_once(total, -208)) << total;  // subnormal
        const std::vector<std::int64_t> totals(20, total);
        Numbers results(totals.size());
        int16::round_totals(totals.size(), std::size_t{1} << 32, totals.data(), 0x1p-30, results.data());
        EXPECT_EQ(results, Numbers(totals.size(), round_once(total, -30))) << total;
      }
    }
  }
}

/// [batch] of [features, batch].
std::vector<std::uint32_t> maxima_of(const Numbers& numbers, std::size_t batch) {
  std::vector<std::uint32_t> bits(batch);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    bits[i % batch] = std::max(bits[i % batch], std::bit_cast<std::uint32_t>(numbers[i]) & 0x7FFFFFFFU);
  return bits;
}

TEST(Int16Test, BatchNormFindsTheLargestOfEachColumn) {
  std::mt19937 random(51);
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    for (const int kind : {0, 1, 3, 5, 6}) {
      const BatchNormShape shape{.batch = 48, .samples = 48, .channels = 3, .pixels = 5};
      const Numbers x = draw(random, 48 * 15, kind), dy = draw(random, x.size(), kind),
                    added = draw(random, x.size(), 0);
      const std::vector<BatchNormChannel> channels(3, {.mean = 0.25F, .rstd = 1.5F, .mean_dy = 0.125F});
      Numbers y(x.size()), plain(x.size());
      std::vector<std::uint8_t> positive(x.size() / 8);
      for (const cpu::NormSteps& steps :
           {cpu::NormSteps{}, cpu::NormSteps{added.data(), true, positive.data()}}) {
        std::vector<std::uint32_t> found(48, 0x7FFFFFFF);
        cpu::batch_norm_forward(shape, x.data(), channels.data(), nullptr, nullptr, steps, y.data(),
                                found.data());
        cpu::batch_norm_forward(shape, x.data(), channels.data(), nullptr, nullptr, steps, plain.data());
        EXPECT_EQ(first_difference("y", plain, y), "");
        EXPECT_EQ(found, maxima_of(y, 48)) << hwy::TargetName(target);
      }
      std::vector<std::uint32_t> found(48, 0x7FFFFFFF);
      cpu::batch_norm_backward(shape, x.data(), dy.data(), channels.data(), nullptr, y.data(), found.data());
      EXPECT_EQ(found, maxima_of(y, 48)) << hwy::TargetName(target);
    }
  }
}

TEST(Int16Test, BiasGradientsOfManyPixelsOverflowNothing) {
  constexpr int kPixels = 90'000, kBatch = 16;  // more than 31 bits hold of one column
  const Numbers dy(std::size_t{kPixels} * kBatch, int16::kLargest);
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    float db = 0;
    int16::bias_gradient(1, kPixels, kBatch, kBatch, dy.data(), &db);
    EXPECT_EQ(db, static_cast<float>(std::int64_t{kPixels} * kBatch * 32639)) << hwy::TargetName(target);
  }
}

/// The unit of 1 is 2^-14: half of it is rounded to 0, and what is a little more is not.
TEST(Int16Test, WhatRoundsToZeroIsCounted) {
  constexpr float kHalf = 0x1p-15F, kMore = 0x1.000002p-15F, kLeast = 0x1p-149F;
  Numbers dy(32);
  std::ranges::copy(std::array{1.0F, kHalf, 0.0F}, dy.begin());
  std::ranges::copy(std::array{-kMore, -kHalf, -kLeast}, dy.begin() + 16);
  dy[3] = dy[31] = 1000;  // in padding
  int16::count_rounding(2, 16, 3, dy.data());
  int16::begin_count();
  int16::count_rounding(2, 16, 3, dy.data());
  const int16::RoundingCount once = int16::take_count();
  EXPECT_EQ(once.nonzero, 5);
  EXPECT_EQ(once.to_zero, 3);
  int16::begin_count();
  const Numbers zeros(32), least(16, kLeast);
  int16::count_rounding(2, 16, 16, zeros.data());
  int16::count_rounding(1, 16, 2, least.data());  // a multiple of their unit
  int16::count_rounding(2, 16, 0, dy.data());
  int16::count_rounding(2, 16, 3, dy.data());
  const int16::RoundingCount sum = int16::take_count();
  EXPECT_EQ(sum.nonzero, 7);
  EXPECT_EQ(sum.to_zero, 3);
  EXPECT_EQ(int16::take_count().nonzero, 0);
}

TEST(Int16Test, EnginesThatAreNotThereAreRefused) {
  EXPECT_THROW(int16::choose_engine("abacus"), UsageError);
  const reference::ForcedTarget forced(reference::all_targets().back());
  if (int16::engine_choices().front() != "doubles") GTEST_SKIP() << "every instruction set here has others";
  EXPECT_THROW(int16::choose_engine("vnni"), DeviceError);
  EXPECT_THROW(int16::choose_engine("amx"), DeviceError);
}

}  // namespace
}  // namespace lockstep::int16_test
