// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops: units, rounded operands, an engine for each group, and the one rounding at the end.
#include "kernels/cpu/int16/ops.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/ops.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <optional>
#include <utility>

namespace lockstep::cpu::int16 {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The engine.

/// The best one first.
constexpr std::array<const Engine*, 3> kEngines = {&kAmx, &kVnni, &kDoubles};

std::atomic<const Engine*> chosen{nullptr};

const Engine& engine() {
  const Engine* in_use = chosen.load(std::memory_order_relaxed);
  if (in_use != nullptr) return *in_use;
  return **std::ranges::find_if(kEngines, [](const Engine* e) { return e->is_here(); });
}

// Forward and data gradient.

/// The sum of target k and one column.
std::int64_t sum_taps(const Correlation& c, const TapRange& row, const TapRange& column, const float* source,
                      const float* weights) {
  std::int64_t total = 0;
  for (std::ptrdiff_t s = 0; s < c.sources; ++s) {
    for (std::ptrdiff_t r = 0; r < row.count; ++r) {
      const std::ptrdiff_t line = s * c.source_rows + row.source + r * c.source_step,
                           tap_row = (row.tap + r * c.tap_step) * c.kernel_columns;
      for (std::ptrdiff_t t = 0; t < column.count; ++t) {
        const std::ptrdiff_t pixel = line * c.source_columns + column.source + t * c.source_step,
                             tap = s * c.weight_source + tap_row + column.tap + t * c.tap_step;
        total += static_cast<std::int64_t>(source[pixel * c.batch]) * static_cast<std::int64_t>(weights[tap]);
      }
    }
  }
  return total;
}

/// For more taps than doubles can sum: in int64, one after the other.
void correlate_many_taps(const GroupProduct& p) {
  const Correlation& c = p.shape;
  auto* const source = scratch<float, ScratchUse::kSource>(c.sources * c.source_channel());
  auto* const weights = scratch<float, ScratchUse::kRounded>(p.filters());
  round_columns(p.sources() * p.pixels(), p.batch(), p.source, p.of_source, source);
  round_all(p.filters(), p.weights, p.of_weights, weights);
  float* target = p.target;
  for (std::ptrdiff_t k = 0; k < c.targets; ++k) {
    for (const TapRange& row : c.rows) {
      for (const TapRange& column : c.columns) {
        for (std::ptrdiff_t n = 0; n < c.batch; ++n, ++target) {
          *target = kNan;
          if (std::isnan(p.units[n])) continue;
          const std::int64_t total = sum_taps(c, row, column, source + n, weights + k * c.weight_target);
          *target = round_once(total, p.units[n]) + (p.bias == nullptr ? 0.0F : p.bias[k]);
        }
      }
    }
  }
}

/// All groups.
void correlate(const Correlation& c, int samples, const Operand& all_sources, const float* weights,
               const float* bias, float* target) {
  const float* source = all_sources.numbers;
  const std::size_t batch = c.batch, features = std::size_t{1} * c.sources * c.source_rows * c.source_columns,
                    filters = c.targets * c.filter(), target_size = c.targets * c.target_channel();
  static thread_local ColumnUnits of_source;
  static thread_local std::vector<double> units;
  find_units(features * c.groups, batch, samples, all_sources, of_source);
  const Unit of_weights = find_unit(filters * c.groups, weights);
  if (std::isnan(of_weights.value)) {
    std::fill_n(target, target_size * c.groups, kNan);
    return;
  }
  units.resize(batch);
  for (std::size_t n = 0; n < batch; ++n) units[n] = of_source.value[n] * of_weights.value;
  const auto correlate_group = c.filter() > kExactTerms ? correlate_many_taps : engine().correlate;
  for (int g = 0; g < c.groups; ++g) {
    correlate_group({c, source, of_source, weights, of_weights, units.data(), bias, target});
    source += features * batch;
    weights += filters;
    if (bias != nullptr) bias += c.targets;
    target += target_size;
  }
}

// Weight gradient.

GradientShape gradient_shape(const Conv2dShape& s, const FramedImage& image) {
  const std::size_t filters = s.out_channels, rows = s.read_height(), columns = s.read_width();
  GradientShape g{.filters = filters,
                  .rows = rows,
                  .columns = columns,
                  .batch = image.batch,
                  .dy_channel = image.batch * s.out_height() * s.out_width(),
                  .dy_row = image.batch * s.out_width(),
                  .x_row = image.row() * s.stride,
                  .x_column = image.batch * s.stride,
                  .taps = {}};
  for (std::size_t c = 0; c < image.channels; ++c)
    for (int r = 0; r < s.kernel_height; ++r)
      for (int t = 0; t < s.kernel_width; ++t)
        g.taps.push_back(c * image.channel() + r * s.dilation * image.row() + t * s.dilation * image.batch);
  return g;
}

}  // namespace

void conv2d_forward(const Conv2dShape& s, int samples, const Operand& x, const float* w, const float* b,
                    float* y) {
  correlate(forward_correlation(s), samples, x, w, b, y);
}

void conv2d_backward_data(const Conv2dShape& s, int samples, const Operand& dy, const float* w,
                          const float* b, float* dx) {
  correlate(backward_correlation(s), samples, dy, w, b, dx);
}

void conv2d_backward_weights(const Conv2dShape& all, int samples, const Operand& all_x, const Operand& all_dy,
                             float* dw) {
  const Conv2dShape s = all.group();
  const std::size_t batch = s.batch, channels = s.in_channels, height = s.in_height, width = s.in_width,
                    padding = s.padding;
  static thread_local ColumnUnits of_x, of_dy;
  const double unit = find_common_unit(all.in_size() / batch, batch, samples, all_x, of_x) *
                      find_common_unit(all.out_size() / batch, batch, samples, all_dy, of_dy);
  if (std::isnan(unit)) {
    std::fill_n(dw, all.weight_size(), kNan);
    return;
  }
  const FramedImage image{channels, height, width, padding, batch};
  const GradientShape g = gradient_shape(s, image);
  auto* const totals = scratch<std::int64_t, ScratchUse::kSums>(s.weight_size());
  const float *x = all_x.numbers, *dy = all_dy.numbers;
  for (int group = 0; group < all.groups; ++group) {
    engine().sum_gradients({g, image, x, of_x, dy, of_dy, totals});
    round_totals(s.weight_size(), g.rows * g.columns * batch, totals, unit, dw);
    x += s.in_size();
    dy += s.out_size();
    dw += s.weight_size();
  }
}

void bias_gradient(int channels, int pixels, int batch, int samples, const Operand& dy, float* db) {
  static thread_local ColumnUnits units;
  const double unit = find_common_unit(std::size_t{1} * channels * pixels, batch, samples, dy, units);
  if (std::isnan(unit)) {
    std::fill_n(db, channels, kNan);
    return;
  }
  for (int c = 0; c < channels; ++c)
    db[c] =
        round_once(sum_rounded(pixels, batch, dy.numbers + std::size_t{1} * c * pixels * batch, units), unit);
}

// How much of a gradient is rounded away.

namespace {

thread_local std::optional<RoundingCount> counted;

std::uint32_t magnitude_of(float number) {
  return std::bit_cast<std::uint32_t>(number) & 0x7FFFFFFFU;
}

}  // namespace

void begin_count() {
  counted = RoundingCount{};
}

RoundingCount take_count() {
  return std::exchange(counted, std::nullopt).value_or(RoundingCount{});
}

/// Half a unit is rounded to even, to 0. Magnitudes have the order of their bits.
void count_rounding(std::size_t features, int batch, int samples, const float* dy) {
  if (!counted) return;
  static thread_local ColumnUnits units;
  const double unit = find_common_unit(features, batch, samples, dy, units);
  if (std::isnan(unit)) return;
  const std::uint32_t half = magnitude_of(static_cast<float>(unit / 2));
  for (std::size_t f = 0; f < features; ++f, dy += batch) {
    std::uint32_t nonzero = 0, to_zero = 0;
    for (int n = 0; n < samples; ++n) {
      const std::uint32_t magnitude = magnitude_of(dy[n]);
      nonzero += magnitude != 0 ? 1 : 0;
      to_zero += magnitude != 0 && magnitude <= half ? 1 : 0;
    }
    counted->nonzero += nonzero;
    counted->to_zero += to_zero;
  }
}

Conv2dShape as_convolution(const LinearShape& s) {
  return {.batch = s.batch,
          .in_channels = s.in_features,
          .in_height = 1,
          .in_width = 1,
          .out_channels = s.out_features,
          .kernel_height = 1,
          .kernel_width = 1};
}

/// Numbers that the engine "doubles" keeps, with room for the others. "amx" fills up 16 channels, and "vnni" keeps a
/// second image of a single channel, sums of 32 filters with their dy, and that of 5 filters in steps.
std::uint64_t scratch_numbers(const Conv2dShape& shape, int columns) {
  constexpr std::uint64_t kOfSums = 64, kOfGradient = 24576;
  const Conv2dShape s = shape.group();
  const std::uint64_t in = checked_sum(s.in_channels, 16), out = checked_sum(s.out_channels, 16);
  const std::uint64_t image = checked_product(in, s.in_height + 2 * s.padding, s.in_width + 2 * s.padding),
                      output = checked_product(out, s.out_height(), s.out_width()),
                      taps = s.weight_size() / s.out_channels;
  return checked_sum(checked_product(checked_sum(image, output, output), columns),
                     checked_product(7, in, out, s.kernel_height, s.kernel_width),
                     checked_product(kOfSums, taps), kOfGradient);
}

// The choice of an engine.

std::vector<std::string> engine_choices() {
  std::vector<std::string> names;
  for (const Engine* e : kEngines)
    if (e->is_here()) names.emplace_back(e->name);
  return names;
}

std::string engine_name() {
  return std::string(engine().name);
}

double engine_peak() {
  return engine().fma_peaks;
}

void choose_engine(std::string_view name) {
  if (name.empty()) return;
  const auto* const found = std::ranges::find(kEngines, name, &Engine::name);
  if (found == kEngines.end())
    throw UsageError(fmt::format("{}={} is not an engine: choose one of {}", kEngineVariable,
                                 printable_line(name), fmt::join(engine_choices(), ", ")));
  if (!(*found)->is_here())
    throw DeviceError(fmt::format("{}={}: this processor does not have it, but {}", kEngineVariable, name,
                                  fmt::join(engine_choices(), ", ")));
  use_engine(**found);
}

void use_engine(const Engine& engine) {
  chosen = &engine;
}

}  // namespace lockstep::cpu::int16
