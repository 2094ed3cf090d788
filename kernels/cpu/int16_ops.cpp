// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops: units, rounded operands, an engine for each group, and the one rounding at the end.
#include "kernels/cpu/int16_ops.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "kernels/cpu/int16_rounding.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

namespace lockstep::cpu::int16 {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The engine.

std::atomic<bool> forced_doubles{false};

bool vnni_is_here() {
  return has_vnni() && simd_name() == "AVX-512";
}

bool uses_vnni() {
  return !forced_doubles.load(std::memory_order_relaxed) && vnni_is_here();
}

// Memory of a thread.

/// Memory for numbers of any type.
template <class Number, class Purpose>
Number* scratch(std::size_t size) {
  static thread_local AlignedBuffer<Number> buffer;
  if (buffer.size() < size) buffer = AlignedBuffer<Number>(size);
  return buffer.data();
}
struct OfSource {};
struct OfWeights {};
struct OfRounded {};
struct OfGradient {};
struct OfTotals {};

// Forward and data gradient.

/// Calls use(place of the weight and of that of the next source, or -1) in the order of for_each_tile, for steps of
/// `at_once` sources, with the block's size and which of its targets it is.
template <class Use>
void for_each_weight(const Correlation& c, std::size_t targets_of_block, std::ptrdiff_t at_once,
                     const Use& use) {
  const std::ptrdiff_t taps = std::ptrdiff_t{c.kernel_rows} * c.kernel_columns;
  for_each_even_block(
      static_cast<std::size_t>(c.targets), targets_of_block, [&](std::size_t first, std::size_t size) {
        for (std::ptrdiff_t source = 0; source < c.sources; source += at_once) {
          const std::ptrdiff_t next = source + 1 < c.sources ? c.weight_source : -1;
          for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
            std::ptrdiff_t place =
                static_cast<std::ptrdiff_t>(first) * c.weight_target + source * c.weight_source + tap;
            for (std::size_t k = 0; k < size; ++k, place += c.weight_target)
              use(place, next < 0 ? -1 : place + next, size, k);
          }
        }
      });
}

void pack_doubles(const Correlation& c, const float* rounded, double* packed) {
  for_each_weight(c, doubles_targets(c.batch), 1,
                  [&](std::ptrdiff_t place, std::ptrdiff_t, std::size_t, std::size_t) {
                    *packed++ = static_cast<double>(rounded[place]);
                  });
}

/// The high digits of a block's targets, then their low ones.
void pack_digit_pairs(const Correlation& c, const std::int16_t* high, const std::int16_t* low,
                      std::int32_t* packed) {
  const auto pair = [](const std::int16_t* digits, std::ptrdiff_t even, std::ptrdiff_t odd) {
    const auto upper = static_cast<std::uint32_t>(odd < 0 ? 0 : digits[odd]);
    return static_cast<std::int32_t>((upper << 16U) | static_cast<std::uint16_t>(digits[even]));
  };
  for_each_weight(c, vnni_targets(c.batch), 2,
                  [&](std::ptrdiff_t even, std::ptrdiff_t odd, std::size_t size, std::size_t k) {
                    packed[k] = pair(high, even, odd);
                    packed[size + k] = pair(low, even, odd);
                    if (k + 1 == size) packed += 2 * size;
                  });
}

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

/// More taps than doubles can sum: in int64, one after the other.
void correlate_many_taps(const Correlation& c, const float* source, const float* weights, const double* units,
                         const float* bias, float* target) {
  for (std::ptrdiff_t k = 0; k < c.targets; ++k) {
    for (const TapRange& row : c.rows) {
      for (const TapRange& column : c.columns) {
        for (std::ptrdiff_t n = 0; n < c.batch; ++n, ++target) {
          *target = kNan;
          if (std::isnan(units[n])) continue;
          const std::int64_t total = sum_taps(c, row, column, source + n, weights + k * c.weight_target);
          *target = round_once(total, units[n]) + (bias == nullptr ? 0.0F : bias[k]);
        }
      }
    }
  }
}

/// All groups.
void correlate(const Correlation& c, int samples, const float* source, const float* weights,
               const float* bias, float* target) {
  const auto batch = static_cast<std::size_t>(c.batch), sources = static_cast<std::size_t>(c.sources);
  const std::size_t pixels = std::size_t{1} * c.source_rows * c.source_columns, channels = sources * c.groups;
  const auto taps = static_cast<std::size_t>(c.kernel_rows) * static_cast<std::size_t>(c.kernel_columns);
  const std::size_t filters = static_cast<std::size_t>(c.targets) * sources * taps;
  const std::size_t target_size =
      static_cast<std::size_t>(c.targets) * c.rows.size() * c.columns.size() * batch;
  static thread_local ColumnUnits of_source;
  static thread_local std::vector<double> units;
  find_units(channels * pixels, batch, static_cast<std::size_t>(samples), source, of_source);
  const Unit of_weights = find_unit(filters * c.groups, weights);
  if (std::isnan(of_weights.value)) {
    std::fill_n(target, target_size * static_cast<std::size_t>(c.groups), kNan);
    return;
  }
  units.resize(batch);
  for (std::size_t n = 0; n < batch; ++n) units[n] = of_source.value[n] * of_weights.value;
  const bool has_many_taps = static_cast<std::int64_t>(sources * taps) > kExactTerms;
  for (int g = 0; g < c.groups; ++g) {
    if (uses_vnni() && !has_many_taps) {
      const std::size_t pairs = (sources + 1) / 2;
      auto* const q = scratch<std::int32_t, OfSource>(pairs * pixels * batch);
      auto* const digits = scratch<std::int16_t, OfRounded>(2 * filters);
      auto* const packed =
          scratch<std::int32_t, OfWeights>(2 * pairs * taps * static_cast<std::size_t>(c.targets));
      round_pairs(sources, pixels, batch, source, of_source, q);
      round_all(filters, weights, of_weights, digits, digits + filters);
      pack_digit_pairs(c, digits, digits + filters, packed);
      correlate_vnni(c, q, packed, units.data(), bias, target);
    } else {
      auto* const q = scratch<float, OfSource>(sources * pixels * batch);
      auto* const rounded = scratch<float, OfRounded>(filters);
      round_columns(sources * pixels, batch, source, of_source, q);
      round_all(filters, weights, of_weights, rounded);
      if (has_many_taps) {
        correlate_many_taps(c, q, rounded, units.data(), bias, target);
      } else {
        auto* const packed = scratch<double, OfWeights>(filters);
        pack_doubles(c, rounded, packed);
        correlate_doubles(c, q, packed, units.data(), bias, target);
      }
    }
    source += sources * pixels * batch;
    weights += filters;
    if (bias != nullptr) bias += c.targets;
    target += target_size;
  }
}

// Weight gradient.

GradientShape gradient_shape(const Conv2dShape& s, const FramedImage& image) {
  GradientShape g{.filters = static_cast<std::size_t>(s.out_channels),
                  .rows = static_cast<std::size_t>(s.read_height()),
                  .columns = static_cast<std::size_t>(s.read_width()),
                  .batch = image.batch,
                  .dy_channel = std::size_t{1} * s.out_height() * s.out_width() * image.batch,
                  .dy_row = static_cast<std::size_t>(s.out_width()) * image.batch,
                  .x_row = static_cast<std::size_t>(s.stride) * image.row(),
                  .x_column = static_cast<std::size_t>(s.stride) * image.batch,
                  .taps = {}};
  for (std::size_t c = 0; c < image.channels; ++c)
    for (int r = 0; r < s.kernel_height; ++r)
      for (int t = 0; t < s.kernel_width; ++t)
        g.taps.push_back(c * image.channel() + static_cast<std::size_t>(r * s.dilation) * image.row() +
                         static_cast<std::size_t>(t * s.dilation) * image.batch);
  return g;
}

}  // namespace

void conv2d_forward(const Conv2dShape& s, int samples, const float* x, const float* w, const float* b,
                    float* y) {
  correlate(forward_correlation(s), samples, x, w, b, y);
}

void conv2d_backward_data(const Conv2dShape& s, int samples, const float* dy, const float* w, const float* b,
                          float* dx) {
  correlate(backward_correlation(s), samples, dy, w, b, dx);
}

void conv2d_backward_weights(const Conv2dShape& all, int samples, const float* x, const float* dy,
                             float* dw) {
  const Conv2dShape s = all.group();
  const auto batch = static_cast<std::size_t>(s.batch), counted = static_cast<std::size_t>(samples);
  static thread_local ColumnUnits of_x, of_dy;
  find_common_unit(all.in_size() / batch, batch, counted, x, of_x);
  find_common_unit(all.out_size() / batch, batch, counted, dy, of_dy);
  const double unit = samples == 0 ? 0 : of_x.value[0] * of_dy.value[0];
  if (std::isnan(unit)) {
    std::fill_n(dw, all.weight_size(), kNan);
    return;
  }
  const FramedImage image{static_cast<std::size_t>(s.in_channels), static_cast<std::size_t>(s.in_height),
                          static_cast<std::size_t>(s.in_width), static_cast<std::size_t>(s.padding), batch};
  const GradientShape g = gradient_shape(s, image);
  const std::size_t outputs = s.out_size();
  auto* const totals = scratch<std::int64_t, OfTotals>(s.weight_size());
  auto* const sums = scratch<double, OfTotals>(numbers_of_sums(g));
  for (int group = 0; group < all.groups; ++group) {
    if (uses_vnni()) {
      auto* const q = scratch<std::int16_t, OfSource>(image.channels * image.channel());
      auto* const digits = scratch<std::int16_t, OfGradient>(2 * outputs);
      round_image(image, x, of_x, q);
      round_digits(outputs / batch, batch, dy, of_dy, digits, digits + outputs);
      sum_gradients_vnni(g, q, digits, digits + outputs, sums, totals);
    } else {
      auto* const q = scratch<float, OfSource>(image.channels * image.channel());
      auto* const gradient = scratch<float, OfGradient>(outputs);
      round_image(image, x, of_x, q);
      round_columns(outputs / batch, batch, dy, of_dy, gradient);
      sum_gradients_doubles(g, q, gradient, sums, totals);
    }
    for (std::size_t i = 0; i < s.weight_size(); ++i) dw[i] = round_once(totals[i], unit);
    x += s.in_size();
    dy += outputs;
    dw += s.weight_size();
  }
}

void bias_gradient(int channels, int pixels, int batch, int samples, const float* dy, float* db) {
  static thread_local ColumnUnits units;
  const std::size_t columns = static_cast<std::size_t>(batch),
                    channel = static_cast<std::size_t>(pixels) * columns;
  find_common_unit(static_cast<std::size_t>(channels) * static_cast<std::size_t>(pixels), columns,
                   static_cast<std::size_t>(samples), dy, units);
  const double unit = samples == 0 ? 0 : units.value[0];
  if (std::isnan(unit)) {
    std::fill_n(db, channels, kNan);
    return;
  }
  float* const q = scratch<float, OfGradient>(channel);
  for (int c = 0; c < channels; ++c) {
    round_columns(static_cast<std::size_t>(pixels), columns, dy + static_cast<std::size_t>(c) * channel,
                  units, q);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < channel; ++i) total += static_cast<std::int32_t>(q[i]);
    db[c] = round_once(total, unit);
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

/// As the engine "doubles", which keeps more.
std::uint64_t scratch_numbers(const Conv2dShape& shape, int columns) {
  const Conv2dShape s = shape.group();
  const std::uint64_t image = checked_product(s.in_channels, s.in_height + 2 * s.padding,
                                              s.in_width + 2 * s.padding),
                      output = checked_product(s.out_channels, s.out_height(), s.out_width());
  return checked_sum(checked_product(checked_sum(image, output, output), columns),
                     checked_product(7, s.weight_size()));
}

// The choice of an engine.

std::vector<std::string> engine_choices() {
  std::vector<std::string> names;
  if (vnni_is_here()) names.emplace_back("vnni");
  names.emplace_back("doubles");
  return names;
}

std::string engine_name() {
  return uses_vnni() ? "vnni" : "doubles";
}

void choose_engine(std::string_view name) {
  if (name.empty()) return;
  if (name != "vnni" && name != "doubles")
    throw UsageError(fmt::format("{}={} is no engine: choose one of {}", kEngineVariable,
                                 printable_line(std::string(name)), fmt::join(engine_choices(), ", ")));
  const auto choices = engine_choices();
  if (std::ranges::find(choices, name) == choices.end())
    throw DeviceError(fmt::format("{}={}: this processor does not have it, but {}", kEngineVariable, name,
                                  fmt::join(choices, ", ")));
  forced_doubles = name == "doubles";
}

void choose_engine_as_told() {
  const char* name =
      std::getenv(kEngineVariable);  // NOLINT(concurrency-mt-unsafe): the environment does not change
  choose_engine(name == nullptr ? "" : name);
}

}  // namespace lockstep::cpu::int16
