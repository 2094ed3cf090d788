// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution, weight and bias gradients: blocks of channels, terms, as many rows as fit the cache, taps.
#include "kernels/cpu/conv2d.hpp"
#include "kernels/cpu/conv2d_padding.hpp"
#include "kernels/cpu/lanes_scratch.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/numerics/sum_cuts.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv2d_backward_weights.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/conv2d_weights_tile_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

/// What a tile reads of dy should stay in the second-level cache while all taps pass over it.
constexpr std::size_t kCachedBytes = (kManyRegisters ? 192 : 14) * 1024;
constexpr std::size_t kSamplesOfPart = GradientSplit::kLanes;
static_assert(kSamplesOfPart == 2 * kLine);

/// Bytes of a row of dy, of as many channels as a tile has.
std::size_t row_bytes(const Conv2dShape& s) {
  return kGradientChannels * static_cast<std::size_t>(s.out_width()) * kSamplesOfPart * sizeof(float);
}

/// The unit's rows of one group of 32 samples, in parts that fit the cache.
void add_parts(const Conv2dShape& s, const PaddedImage& x, std::size_t first_row, std::size_t rows,
               std::size_t first_sample, std::vector<GradientRows>& parts) {
  const std::size_t batch = s.batch, at_once = std::max<std::size_t>(1, kCachedBytes / row_bytes(s));
  for (std::size_t row = first_row; row < first_row + rows; row += at_once) {
    parts.push_back({.x = row * s.stride * x.width * batch + first_sample,
                     .dy = row * s.out_width() * batch + first_sample,
                     .dy_channel = batch * s.out_width() * s.out_height(),
                     .rows = std::min(at_once, first_row + rows - row),
                     .lines = batch - first_sample > kLine ? std::size_t{2} : std::size_t{1},
                     .begins = false,
                     .ends = false});
  }
}

/// All units of term t, in order.
std::vector<GradientRows> parts_of_term(const Conv2dShape& s, const PaddedImage& x,
                                        const GradientSplit& split, int t) {
  std::vector<GradientRows> parts;
  const int end = std::min(split.units(), (t + 1) * split.units_of_term);
  for (int unit = t * split.units_of_term; unit < end; ++unit) {
    const std::size_t before = parts.size();
    const int first_row = unit / split.sample_units * split.rows;
    const int rows = std::min(split.rows, s.out_height() - first_row);
    const int first_sample = unit % split.sample_units * split.samples_of_unit();
    const int last_sample = std::min(s.batch, first_sample + split.samples_of_unit());
    for (int n = first_sample; n < last_sample; n += static_cast<int>(kSamplesOfPart))
      add_parts(s, x, first_row, rows, n, parts);
    if (parts.size() == before) continue;  // a grain with fewer samples
    parts[before].begins = true;
    parts.back().ends = true;
  }
  return parts;
}

/// Calls use(first, size) for each tile's taps. The first tile takes the bias gradient along.
template <class Use>
void for_each_tile(std::size_t taps, const Use& use) {
  for (std::size_t first = 0; first < taps;) {
    const std::size_t limit = first == 0 ? kGradientTapsWithBias : kGradientTaps;
    const std::size_t left = taps - first, tiles = (left + limit - 1) / limit;
    const std::size_t size = (left + tiles - 1) / tiles;
    use(first, size);
    first += size;
  }
}

/// sums[i] = the sum of 32 lanes, for `count` pairs of lines that follow one another, which are overwritten: the tree of
/// lane_distance().
void sum_pairs(float* lines, std::size_t count, float* sums) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t lane = 0; lane < kLine; lane += kVector) {
      const float* pair = lines + i * 2 * kLine + lane;
      hn::StoreU(hn::Add(hn::LoadU(kTag, pair), hn::LoadU(kTag, pair + kLine)), kTag,
                 lines + i * kLine + lane);
    }
  }
  sum_lines(lines, count, sums);
}

/// What a term reads of dy, in the order in which tiles read it: [part][16 samples][channel][pixel]. In dy itself the
/// pixels of 16 samples lie as far apart as the batch is large, which caches do not like.
class PackedGradients {
 public:
  /// Makes `call` read it in place of dy.
  void pack(GradientCall& call, std::size_t channels) {
    static thread_local Scratch scratch;
    parts_.assign(call.parts, call.parts + call.count);
    std::size_t pixels = 0;
    for (const GradientRows& part : parts_) pixels += part.rows * call.columns;
    float* const packed = scratch.floats(pixels * channels * kSamplesOfPart);
    float* to = packed;
    for (GradientRows& part : parts_) {
      const std::size_t of_channel = part.rows * call.columns * kLine;
      const float* from = call.dy + part.dy;
      const std::size_t begin = to - packed;
      for (std::size_t line = 0; line < part.lines; ++line) {
        for (std::size_t k = 0; k < channels; ++k, to += of_channel)
          copy_pixels(from + k * part.dy_channel + line * kLine, call.dy_column, part.rows * call.columns,
                      to);
      }
      part.dy = begin;
      part.dy_channel = of_channel;
      part.dy_line = channels * of_channel;
    }
    call.dy = packed;
    call.dy_column = kLine;
    call.parts = parts_.data();
  }

 private:
  static void copy_pixels(const float* from, std::size_t step, std::size_t count, float* to) {
    for (std::size_t i = 0; i < count; ++i, from += step, to += kLine) {
      for (std::size_t lane = 0; lane < kLine; lane += kVector)
        hn::StoreU(hn::LoadU(kTag, from + lane), kTag, to + lane);
    }
  }

  std::vector<GradientRows> parts_;
};

/// Where the sums of a term go, of a block of channels.
struct TermOutput {
  std::size_t channels = 0;
  float* dw = nullptr;  ///< [channels][taps]
  float* db = nullptr;  ///< [channels]
};

/// A term whose parts fit the cache: tile by tile, whose lines are summed up while they are near.
void write_small_term(GradientCall call, const std::vector<std::size_t>& taps, const TermOutput& to) {
  constexpr std::size_t kMostLines = kGradientChannels * (std::max(kGradientTaps, kGradientTapsWithBias) + 1);
  HWY_ALIGN float lines[kMostLines * 2 * kLine];
  HWY_ALIGN float chain[kMostLines * 2 * kLine];
  float sums[kMostLines];
  constexpr std::size_t kWorthPacking = 100;  // taps; measured on a processor with AVX-512
  PackedGradients packed;
  if (taps.size() > kWorthPacking) packed.pack(call, to.channels);
  call.term = lines;
  call.chain = chain;
  call.begins_term = true;
  for_each_tile(taps.size(), [&](std::size_t first, std::size_t size) {
    const bool has_bias = first == 0;
    const std::size_t of_channel = size + (has_bias ? 1 : 0);
    call.tap = taps.data() + first;
    call.line_channel = of_channel * 2 * kLine;
    call.bias = size * 2 * kLine;
    find_gradient_tile(to.channels, size, has_bias)(call);
    sum_pairs(lines, to.channels * of_channel, sums);
    for (std::size_t k = 0; k < to.channels; ++k) {
      std::copy_n(sums + k * of_channel, size, to.dw + k * taps.size() + first);
      if (has_bias) to.db[k] = sums[k * of_channel + size];
    }
  });
}

/// Any term: as many parts at a time as fit the cache, and lines for all taps.
void write_large_term(GradientCall call, const Conv2dShape& s, const std::vector<std::size_t>& taps,
                      const std::vector<GradientRows>& parts, const TermOutput& to) {
  static thread_local Scratch scratch;
  call.line_channel = (taps.size() + 1) * 2 * kLine;
  call.bias = taps.size() * 2 * kLine;
  float* const term = scratch.floats(2 * kGradientChannels * call.line_channel);
  float* const chain = term + kGradientChannels * call.line_channel;
  std::fill(term, term + to.channels * call.line_channel, 0.0F);
  for (std::size_t first = 0; first < parts.size(); first += call.count) {
    std::size_t rows = parts[first].rows;
    call.parts = parts.data() + first;
    call.count = 1;
    while (first + call.count < parts.size()) {
      rows += parts[first + call.count].rows;
      if (rows * row_bytes(s) > kCachedBytes) break;
      ++call.count;
    }
    for_each_tile(taps.size(), [&](std::size_t tap, std::size_t size) {
      call.tap = taps.data() + tap;
      call.term = term + tap * 2 * kLine;
      call.chain = chain + tap * 2 * kLine;
      find_gradient_tile(to.channels, size, tap == 0)(call);
    });
  }
  for (std::size_t k = 0; k < to.channels; ++k) {
    float* const lines = term + k * call.line_channel;
    sum_pairs(lines + call.bias, 1, to.db + k);
    sum_pairs(lines, taps.size(), to.dw + k * taps.size());
  }
}

void write_term(GradientCall call, const Conv2dShape& s, const std::vector<std::size_t>& taps,
                const std::vector<GradientRows>& parts, const TermOutput& to) {
  std::size_t rows = 0;
  for (const GradientRows& part : parts) rows += part.rows;
  if (parts.empty()) {
    std::fill_n(to.dw, to.channels * taps.size(), 0.0F);
    std::fill_n(to.db, to.channels, 0.0F);
  } else if (rows * row_bytes(s) <= 2 * kCachedBytes) {
    call.parts = parts.data();
    call.count = parts.size();
    write_small_term(call, taps, to);
  } else {
    write_large_term(call, s, taps, parts, to);
  }
}

GradientCall gradient_call(const Conv2dShape& s, const PaddedImage& x) {
  const std::size_t batch = s.batch, columns = s.out_width();
  GradientCall call;
  call.columns = columns;
  call.x_column = batch * s.stride;
  call.x_row = batch * s.stride * x.width;
  call.dy_column = batch;
  call.x = x.data;
  return call;
}

}  // namespace

void call_backward_weights(const Conv2dShape& s, const GradientSplit& split, const PaddedImage& x,
                           const std::vector<std::size_t>& taps, const float* dy, const GradientOutput& to) {
  GradientCall call = gradient_call(s, x);
  for (int t = 0; t < split.terms; ++t) {
    const std::vector<GradientRows> parts = parts_of_term(s, x, split, t);
    float* const dw = to.dw + t * to.term_stride;
    float* const db = to.db + t * to.term_stride;
    for_each_block(s.out_channels, kGradientChannels, [&](std::size_t first, std::size_t channels) {
      call.dy = dy + first * s.batch * s.out_width() * s.out_height();
      write_term(call, s, taps, parts, {channels, dw + first * taps.size(), db + first});
    });
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(call_backward_weights);

void conv2d_backward_weights(const Conv2dShape& s, int grain, const float* x, const float* dy,
                             const GradientOutput& to) {
  static thread_local Scratch scratch;
  const PaddedImage image = pad_image(s, x, scratch);
  HWY_DYNAMIC_DISPATCH(call_backward_weights)
  (s, GradientSplit(s, grain), image, tap_offsets(s, image), dy, to);
}

}  // namespace lockstep::cpu
#endif  // HWY_ONCE
