// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Source and weights of a forward pass or of a data gradient as the engine "vnni" reads them. A step is four numbers
/// of each: of four channels or, where there is one channel, of four neighbouring columns.
#pragma once

#include "kernels/cpu/int16/vnni_inl.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

HWY_PUSH_ATTRIBUTES(LOCKSTEP_VNNI)

namespace lockstep::cpu::int16::vnni {

/// Places of a step, in elements of the packed source and in steps of the packed weights.
struct Step {
  std::ptrdiff_t source = 0, weight = 0;
};

/// Pixels whose windows hold the same taps.
struct WindowSteps {
  std::vector<Step> pairs, quads;  ///< a quad has two pairs, but at the end one if there are so few elements

  std::size_t pairs_of(std::size_t first_quads) const {
    return first_quads + std::min(first_quads, pairs.size() - quads.size());
  }
};

/// How source and weights are packed: `elements` of a window follow one another, on each of its `lines`.
struct Packing {
  const Correlation& c;
  bool has_columns;  ///< elements are columns of the only channel, in a frame of zeros; else channels
  int above = 0, left = 0, rows, columns;  ///< the frame, and the image with it

  explicit Packing(const Correlation& correlation)
      : c(correlation),
        has_columns(c.sources == 1 && c.kernel_columns > 1 && c.source_step == 1 && c.tap_step == 1),
        rows(c.source_rows),
        columns(c.source_columns) {
    if (!has_columns) return;
    const auto frame = [](const std::vector<TapRange>& ranges, int kernel, int& before, int& size) {
      for (const TapRange& range : ranges) before = std::max(before, range.tap - range.source);
      size += before;
      for (const TapRange& range : ranges) size = std::max(size, before + range.source - range.tap + kernel);
    };
    frame(c.rows, c.kernel_rows, above, rows);
    frame(c.columns, c.kernel_columns, left, columns);
  }

  std::size_t elements() const {
    return static_cast<std::size_t>(has_columns ? c.kernel_columns : c.sources);
  }
  std::size_t pairs() const { return (elements() + 1) / 2; }
  std::size_t quads() const { return (elements() + 3) / 4; }
  std::ptrdiff_t weight_element() const { return has_columns ? 1 : c.weight_source; }
  std::size_t lines() const {
    return static_cast<std::size_t>(c.kernel_rows) * (has_columns ? 1 : c.kernel_columns);
  }
  std::ptrdiff_t weight_line() const { return has_columns ? c.kernel_columns : 1; }

  std::ptrdiff_t row() const { return std::ptrdiff_t{columns} * c.batch; }
  /// From a pair or a quad to the next one, of `size` elements.
  std::ptrdiff_t source_step(std::ptrdiff_t size) const {
    return has_columns ? size * c.batch : row() * rows;
  }
  std::size_t numbers_of(std::size_t planes) const {
    return (has_columns ? 1 : planes) * static_cast<std::size_t>(row() * rows);
  }
  /// The pixel that a window begins with.
  std::ptrdiff_t first(const TapRange& r, const TapRange& q) const {
    if (!has_columns) return r.source * row() + std::ptrdiff_t{q.source} * c.batch;
    return (above + r.source - r.tap) * row() + std::ptrdiff_t{left + q.source - q.tap} * c.batch;
  }

  WindowSteps steps(const TapRange& r, const TapRange& q) const {
    WindowSteps steps;
    if (r.count == 0 || q.count == 0) return steps;
    const int rows_of_window = has_columns ? c.kernel_rows : r.count,
              columns_of_window = has_columns ? 1 : q.count;
    const std::size_t taps = std::size_t{1} * rows_of_window * columns_of_window;
    steps.quads.reserve(taps * quads());
    steps.pairs.reserve(taps * pairs());
    for (std::size_t quad = 0; quad < quads(); ++quad) {
      const std::size_t last_pair = std::min(pairs(), 2 * quad + 2);
      for (int i = 0; i < rows_of_window; ++i) {
        const std::ptrdiff_t at_row = c.source_step * i * row();
        const int line_row = has_columns ? i : (r.tap + i * c.tap_step) * c.kernel_columns + q.tap;
        for (int j = 0; j < columns_of_window; ++j) {
          const std::ptrdiff_t at = at_row + std::ptrdiff_t{c.source_step} * j * c.batch;
          const auto line = static_cast<std::size_t>(line_row + j * c.tap_step);
          steps.quads.push_back(step(quad, 4, at, line));
          for (std::size_t pair = 2 * quad; pair < last_pair; ++pair)
            steps.pairs.push_back(step(pair, 2, at, line));
        }
      }
    }
    return steps;
  }

 private:
  Step step(std::size_t which, std::ptrdiff_t size, std::ptrdiff_t at, std::size_t line) const {
    return {static_cast<std::ptrdiff_t>(which) * source_step(size) + at,
            static_cast<std::ptrdiff_t>(which * lines() + line)};
  }
};

/// The windows of all pixels.
class Windows {
 public:
  explicit Windows(const Packing& packing)
      : row_kinds_(packing.c.rows), column_kinds_(packing.c.columns), columns_(column_kinds_.first.size()) {
    windows_.reserve(row_kinds_.first.size() * columns_);
    for (const TapRange* row : row_kinds_.first)
      for (const TapRange* column : column_kinds_.first) windows_.push_back(packing.steps(*row, *column));
  }
  const WindowSteps& at(std::size_t row, std::size_t column) const {
    return windows_[row_kinds_.of[row] * columns_ + column_kinds_.of[column]];
  }

 private:
  /// Pixels along an axis that sum over the same taps are of one kind.
  struct Kinds {
    std::vector<const TapRange*> first;  ///< one a kind
    std::vector<std::size_t> of;         ///< one a pixel: its kind

    explicit Kinds(const std::vector<TapRange>& axis) {
      for (const TapRange& taps : axis) {
        const auto known = std::ranges::find_if(
            first, [&](const TapRange* t) { return t->tap == taps.tap && t->count == taps.count; });
        of.push_back(static_cast<std::size_t>(known - first.begin()));
        if (known == first.end()) first.push_back(&taps);
      }
    }
  };

  Kinds row_kinds_, column_kinds_;
  std::size_t columns_;
  std::vector<WindowSteps> windows_;
};

/// Rounds a row of four elements; those that are null are zeros, and places that are null are not written.
inline void round_quads(std::size_t pixels, std::size_t batch, const float* const (&x)[4],
                        const ColumnUnits& units, std::int32_t* even, std::int32_t* odd,
                        std::int32_t* digits) {
  const __m512i low_half = _mm512_set1_epi32(0xFFFF);
  for (std::size_t n = 0; n < batch; n += kVectorColumns) {
    const __m512 first = _mm512_loadu_ps(units.first.data() + n),
                 second = _mm512_loadu_ps(units.second.data() + n);
    for (std::size_t at = n; at < pixels * batch; at += batch) {
      __m512i q[4];
      LOCKSTEP_UNROLL
      for (std::size_t i = 0; i < 4; ++i)
        q[i] = x[i] == nullptr ? _mm512_setzero_si512() : round_vector(x[i] + at, first, second);
      __m512i pair[2];
      LOCKSTEP_UNROLL
      for (std::size_t i = 0; i < 2; ++i)
        pair[i] = _mm512_or_si512(_mm512_and_si512(q[2 * i], low_half), _mm512_slli_epi32(q[2 * i + 1], 16));
      _mm512_storeu_si512(even + at, pair[0]);
      if (odd != nullptr) _mm512_storeu_si512(odd + at, pair[1]);
      _mm512_storeu_si512(digits + at, without_sign(high_digits(pair[0], pair[1])));
    }
  }
}

/// @param pairs   [pair][row][column][sample]
/// @param digits  [quad][row][column][sample]
inline void pack_source(const GroupProduct& p, const Packing& packing, std::int32_t* pairs,
                        std::int32_t* digits) {
  const std::size_t batch = p.batch(), channel = p.pixels() * batch;
  if (!packing.has_columns) {
    for (std::size_t c = 0; c < p.sources(); c += 4, pairs += 2 * channel, digits += channel) {
      const float* x[4] = {};
      for (std::size_t i = 0; i < std::min<std::size_t>(4, p.sources() - c); ++i)
        x[i] = p.source + (c + i) * channel;
      round_quads(p.pixels(), batch, x, p.of_source, pairs, c + 2 < p.sources() ? pairs + channel : nullptr,
                  digits);
    }
    return;
  }
  const auto row = static_cast<std::size_t>(packing.row()),
             width = std::size_t{1} * p.shape.source_columns * batch;
  auto* const framed = scratch<float, ScratchUse::kRounded>(row + 3 * batch);
  std::fill_n(framed, row + 3 * batch, 0.0F);
  for (int r = 0; r < packing.rows; ++r, pairs += row, digits += row) {
    const int of_image = r - packing.above;
    float* const begin = framed + static_cast<std::size_t>(packing.left) * batch;
    if (of_image >= 0 && of_image < p.shape.source_rows)
      std::copy_n(p.source + static_cast<std::size_t>(of_image) * width, width, begin);
    else
      std::fill_n(begin, width, 0.0F);
    round_quads(row / batch, batch, {framed, framed + batch, framed + 2 * batch, framed + 3 * batch},
                p.of_source, pairs, nullptr, digits);
  }
}

/// So many elements of a line, 16 bits each.
template <std::size_t kElements>
HWY_INLINE std::uint64_t load_elements(const std::int16_t* q, std::ptrdiff_t element) {
  std::uint64_t elements = 0;
  if (kElements == 4 && element == 1) {
    std::memcpy(&elements, q, sizeof elements);
    return elements;
  }
  LOCKSTEP_UNROLL
  for (std::size_t i = 0; i < kElements; ++i, q += element)
    elements |= std::uint64_t{static_cast<std::uint16_t>(*q)} << (16 * i);
  return elements;
}

/// The weights of some targets, so many elements of a line.
template <std::size_t kElements>
void pack_line(const std::int16_t* q, std::ptrdiff_t element, std::ptrdiff_t target, std::size_t targets,
               std::int32_t* even, std::int32_t* odd, std::int32_t* digits) {
  const __m128i order = _mm_cvtsi32_si128(0x07030501);  // high digits, as high_digits() has them
  for (std::size_t k = 0; k < targets; ++k, q += target) {
    const auto elements = static_cast<std::int64_t>(load_elements<kElements>(q, element));
    even[k] = static_cast<std::int32_t>(elements);
    if constexpr (kElements > 2) odd[k] = static_cast<std::int32_t>(elements >> 32);
    const __m128i upper = _mm_add_epi16(_mm_cvtsi64_si128(elements), _mm_set1_epi16(128));
    digits[k] = _mm_cvtsi128_si32(_mm_shuffle_epi8(upper, order));
  }
}

/// @param q       rounded weights
/// @param pairs   [block of targets][pair][line][target of the block]
/// @param digits  [block of targets][quad][line][target of the block]
inline void pack_weights(const Packing& packing, std::size_t targets_of_block, const std::int16_t* q,
                         std::int32_t* pairs, std::int32_t* digits) {
  static constexpr std::array kPack = {pack_line<1>, pack_line<2>, pack_line<3>, pack_line<4>};
  const std::ptrdiff_t element = packing.weight_element(), target = packing.c.weight_target;
  for_each_block(packing.c.targets, targets_of_block, [&](std::size_t first, std::size_t size) {
    const std::int16_t* const of_block = q + first * target;
    const std::size_t to_odd = packing.lines() * size;
    for (std::size_t e = 0; e < packing.elements(); e += 4) {
      const std::size_t count = std::min<std::size_t>(4, packing.elements() - e);
      const std::int16_t* from = of_block + e * element;
      for (std::size_t line = 0; line < packing.lines(); ++line, from += packing.weight_line()) {
        kPack[count - 1](from, element, target, size, pairs, pairs + to_odd, digits);
        pairs += size;
        digits += size;
      }
      if (count > 2) pairs += to_odd;
    }
  });
}

}  // namespace lockstep::cpu::int16::vnni

HWY_POP_ATTRIBUTES
