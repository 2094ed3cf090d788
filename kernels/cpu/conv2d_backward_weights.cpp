// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution, weight and bias gradients: blocks of channels, terms, groups of taps, 16 lanes at a time, as many
/// rows of dy as fit the first-level cache, tiles of taps.
#include "kernels/cpu/conv2d_padding.hpp"
#include "kernels/cpu/operands.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/sum_cuts.hpp"

#include <algorithm>
#include <array>
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

/// What tiles read of dy stays in the first-level cache while all taps of a group pass over it, beside their lines.
constexpr std::size_t kCachedBytes = (kManyRegisters ? 32 : 12) * 1024;
constexpr std::size_t kTapsOfGroup = 25;
constexpr std::size_t kHalves = 2;  ///< lines of a sum's 32 lanes
static_assert(GradientSplit::kLanes == kHalves * kLine);

/// Of a term, 16 lanes: its units in order, cut into rows that fit the cache.
using TermParts = std::array<std::vector<GradientRows>, kHalves>;

/// As many rows of dy, of the channels of a tile, as fit the cache.
std::size_t rows_at_once(const Conv2dShape& s) {
  const std::size_t row = kGradientChannels * static_cast<std::size_t>(s.out_width()) * kLine * sizeof(float);
  return std::max<std::size_t>(1, kCachedBytes / row);
}

/// The unit's rows of 16 samples.
void add_parts(const Conv2dShape& s, std::size_t first_row, std::size_t rows, std::size_t first_sample,
               std::vector<GradientRows>& parts) {
  const std::size_t batch = s.batch, width = s.in_width + 2 * s.padding, at_once = rows_at_once(s);
  for (std::size_t row = first_row; row < first_row + rows; row += at_once) {
    parts.push_back({.x = row * s.stride * width * batch + first_sample,
                     .dy = row * s.out_width() * batch + first_sample,
                     .dy_channel = batch * s.out_width() * s.out_height(),
                     .rows = std::min(at_once, first_row + rows - row),
                     .begins = false,
                     .ends = false});
  }
}

/// All units of term t, in order. Lanes that a grain has no samples for are left out.
TermParts parts_of_term(const Conv2dShape& s, const GradientSplit& split, int t) {
  TermParts parts;
  const int end = std::min(split.units(), (t + 1) * split.units_of_term);
  for (int unit = t * split.units_of_term; unit < end; ++unit) {
    const int first_row = unit / split.sample_units * split.rows;
    const int rows = std::min(split.rows, s.out_height() - first_row);
    const int first_sample = unit % split.sample_units * split.samples_of_unit();
    const int last_sample = std::min(s.batch, first_sample + split.samples_of_unit());
    for (std::size_t half = 0; half < kHalves; ++half) {
      std::vector<GradientRows>& of_half = parts[half];
      const std::size_t before = of_half.size();
      for (int n = first_sample + static_cast<int>(half * kLine); n < last_sample; n += GradientSplit::kLanes)
        add_parts(s, first_row, rows, n, of_half);
      if (of_half.size() == before) continue;  // a grain with fewer samples
      of_half[before].begins = true;
      of_half.back().ends = true;
    }
  }
  return parts;
}

/// Calls use(first, size) for each tile of `taps` taps. With a bias the first one takes that along, and has fewer taps.
template <class Use>
void for_each_tile(std::size_t taps, bool has_bias, const Use& use) {
  const std::size_t most = has_bias ? kGradientTapsWithBias : kGradientTaps;
  std::size_t tiles = 1 + (taps - std::min(taps, most) + kGradientTaps - 1) / kGradientTaps;
  for (std::size_t first = 0; first < taps; --tiles) {
    const std::size_t even = (taps - first + tiles - 1) / tiles;
    const std::size_t size = first == 0 ? std::min(even, most) : even;
    use(first, size);
    first += size;
  }
}

/// What a term reads of dy, in the order in which tiles read it: [half][part][channel][pixel]. In dy itself the
/// pixels of 16 samples lie as far apart as the batch is large, which caches do not like.
class PackedGradients {
 public:
  /// Makes `call` read it in place of dy. @returns the parts, of it
  const TermParts& pack(GradientCall& call, const TermParts& parts, std::size_t channels) {
    static thread_local Scratch scratch;
    parts_ = parts;
    std::size_t pixels = 0;
    for (const auto& of_half : parts_)
      for (const GradientRows& part : of_half) pixels += part.rows * call.columns;
    float* const packed = scratch.floats(pixels * channels * kLine);
    float* to = packed;
    for (auto& of_half : parts_) {
      for (GradientRows& part : of_half) {
        const std::size_t count = part.rows * call.columns;
        const float* from = call.dy + part.dy;
        part.dy = to - packed;
        for (std::size_t k = 0; k < channels; ++k, from += part.dy_channel, to += count * kLine)
          copy_pixels(from, call.dy_column, count, to);
        part.dy_channel = count * kLine;
      }
    }
    call.dy = packed;
    call.dy_column = kLine;
    return parts_;
  }

 private:
  static void copy_pixels(const float* from, std::size_t step, std::size_t count, float* to) {
    for (std::size_t i = 0; i < count; ++i, from += step, to += kLine) {
      for (std::size_t lane = 0; lane < kLine; lane += kVector)
        hn::StoreU(hn::LoadU(kTag, from + lane), kTag, to + lane);
    }
  }

  TermParts parts_;
};

/// A packed term is not larger than this, so that scratch memory has a limit.
constexpr std::size_t kMostPackedFloats = 2 * 192 * 1024 / sizeof(float);
constexpr std::size_t kWorthPacking = 100;  // taps; measured on a processor with AVX-512

bool is_worth_packing(const TermParts& parts, std::size_t taps, std::size_t columns) {
  std::size_t pixels = 0;
  for (const auto& of_half : parts)
    for (const GradientRows& part : of_half) pixels += part.rows * columns;
  return taps > kWorthPacking && pixels * kGradientChannels * kLine <= kMostPackedFloats;
}

/// Some taps that follow one another, of a block of channels: the lines of their sums lie in the first-level cache.
struct TapGroup {
  const std::size_t* taps = nullptr;
  std::size_t count = 0, channels = 0;
  bool has_bias = false;

  /// Of a channel.
  std::size_t lines() const { return count + (has_bias ? 1 : 0); }
};

/// The sums over the units of 16 lanes: lines [channel][tap], and the bias behind the taps.
void add_units(GradientCall call, const std::vector<GradientRows>& parts, std::size_t rows,
               const TapGroup& group, float* term, float* chain) {
  call.begins_term = true;
  for (std::size_t first = 0; first < parts.size(); first += call.count) {
    call.parts = parts.data() + first;
    std::size_t taken = call.parts[0].rows;
    bool ends = call.parts[0].ends;
    for (call.count = 1; first + call.count < parts.size(); ++call.count) {
      const GradientRows& next = call.parts[call.count];
      if ((taken += next.rows) > rows) break;
      ends |= next.ends;
    }
    for_each_tile(group.count, group.has_bias, [&](std::size_t tap, std::size_t size) {
      call.tap = group.taps + tap;
      call.term = term + tap * kLine;
      call.chain = chain + tap * kLine;
      find_gradient_tile(group.channels, size, group.has_bias && tap == 0)(call);
    });
    call.begins_term = call.begins_term && !ends;
  }
}

/// Where the sums of a term go, of a block of channels.
struct TermOutput {
  std::size_t channels = 0;
  float* dw = nullptr;  ///< [channels][taps]
  float* db = nullptr;  ///< [channels]
};

void write_term(GradientCall call, const Conv2dShape& s, const std::vector<std::size_t>& taps,
                const TermParts& term_parts, const TermOutput& to) {
  constexpr std::size_t kMostLines = (kGradientChannels * (kTapsOfGroup + 1) + 3) / 4 * 4;
  HWY_ALIGN float lines[kHalves][kMostLines * kLine];
  HWY_ALIGN float chain[kMostLines * kLine];
  float sums[kMostLines];
  PackedGradients packed;
  const bool packs = is_worth_packing(term_parts, taps.size(), call.columns);
  const TermParts& parts = packs ? packed.pack(call, term_parts, to.channels) : term_parts;
  for_each_block(taps.size(), kTapsOfGroup, [&](std::size_t first, std::size_t size) {
    const TapGroup group{taps.data() + first, size, to.channels, first == 0};
    call.line_channel = group.lines() * kLine;
    call.bias = size * kLine;
    for (std::size_t half = 0; half < kHalves; ++half) {
      if (parts[half].empty()) std::fill_n(lines[half], to.channels * call.line_channel, 0.0F);
      add_units(call, parts[half], rows_at_once(s), group, lines[half], chain);
    }
    sum_lines(lines[0], lines[1], to.channels * group.lines(), sums);
    for (std::size_t k = 0; k < to.channels; ++k) {
      std::copy_n(sums + k * group.lines(), size, to.dw + k * taps.size() + first);
      if (group.has_bias) to.db[k] = sums[k * group.lines() + size];
    }
  });
}

GradientCall gradient_call(const Conv2dShape& s) {
  const std::size_t batch = s.batch, columns = s.out_width();
  GradientCall call;
  call.columns = columns;
  call.x_column = batch * s.stride;
  call.x_row = batch * s.stride * (s.in_width + 2 * s.padding);
  call.dy_column = batch;
  return call;
}

/// What all groups of a convolution have in common.
struct GroupGradient {
  Conv2dShape shape;  ///< of one
  std::vector<std::size_t> taps;
  std::vector<TermParts> terms;

  GroupGradient(const Conv2dShape& s, const GradientSplit& split)
      : shape(s.group()), taps(tap_offsets(shape)) {
    for (int t = 0; t < split.terms; ++t) terms.push_back(parts_of_term(shape, split, t));
  }

  void write(const float* x, const float* dy, const GradientOutput& to) const {
    const auto channels = static_cast<std::size_t>(shape.out_channels);
    GradientCall call = gradient_call(shape);
    call.x = x;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      float* const dw = to.dw + t * to.term_stride;
      float* const db = to.db + t * to.term_stride;
      for_each_block(channels, kGradientChannels, [&](std::size_t first, std::size_t count) {
        call.dy = dy + first * shape.batch * shape.out_width() * shape.out_height();
        write_term(call, shape, taps, terms[t], {count, dw + first * taps.size(), db + first});
      });
    }
  }
};

}  // namespace

void call_backward_weights(const Conv2dShape& s, const GradientSplit& split, const float* x, const float* dy,
                           GradientOutput to) {
  static thread_local Scratch scratch;
  // A few channels read x as often as it would be copied.
  const bool skips = skips_pixels(s) && s.group_outputs() > 2 * static_cast<int>(kGradientChannels);
  const GroupGradient group(skips ? without_skipped(s) : s, split);
  const Conv2dShape of_group = s.group();
  for (int g = 0; g < s.groups; ++g) {
    group.write(skips ? copy_read_pixels(of_group, x, scratch) : pad_image(of_group, x, scratch), dy, to);
    x += of_group.in_size();
    dy += group.shape.out_size();
    to.dw += group.shape.weight_size();
    to.db += group.shape.out_channels;
  }
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(call_backward_weights);

void conv2d_backward_weights(const Conv2dShape& s, const GradientSplit& split, const float* x,
                             const float* dy, const GradientOutput& to) {
  HWY_DYNAMIC_DISPATCH(call_backward_weights)(s, split, x, dy, to);
}

}  // namespace lockstep::cpu
#endif  // HWY_ONCE
