// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolution, weight and bias gradients. Loops over blocks of channels, terms, groups of taps, 16 lanes at a time, as
/// many rows of dy as fit the first-level cache, tiles of taps.
#include "kernels/cpu/conv2d_padding.hpp"
#include "kernels/cpu/operands.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/sum_cuts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv2d_backward_weights.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/conv2d_weights_tile_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

/// Rows of dy that tiles read stay in the first-level cache, with their lines, while all taps run.
constexpr std::size_t kCachedBytes = (kManyRegisters ? 32 : 12) * 1024;
constexpr std::size_t kTapsOfGroup = 25, kFiltersOfGroup = 4;
constexpr std::size_t kHalves = 2;  ///< lines of a sum's 32 lanes
static_assert(GradientSplit::kLanes == kHalves * kLine);

/// Parts of a term, 16 lanes each: its units in order, cut into rows that fit the cache.
using TermParts = std::array<std::vector<GradientRows>, kHalves>;

/// True if tiles are filters, which know where the padding is. Each channel of dy is then read once more, for the bias,
/// which a few channels of x are not worth.
/// @param s  shape of a group
bool has_filter_tiles(const Conv2dShape& s) {
  constexpr int kLeastChannels = 16;
  return kManyRegisters && s.padding == 1 && s.kernel_height == 3 && s.kernel_width == 3 && s.dilation == 1 &&
         s.in_height > 1 && s.in_width > 1 && (s.in_channels >= kLeastChannels || s.out_channels == 1);
}
/// True if padding is made real.
bool copies_image(const Conv2dShape& s) {
  return s.padding > 0 && !has_filter_tiles(s);
}
std::size_t image_width(const Conv2dShape& s) {
  return s.in_width + (copies_image(s) ? 2 * s.padding : 0);
}
std::size_t channels_of_tile(const Conv2dShape& s) {
  return has_filter_tiles(s) ? kFilterChannels : kGradientChannels;
}

/// Rows of dy, of the channels of a tile, that fit the cache.
std::size_t rows_at_once(const Conv2dShape& s) {
  const std::size_t row = channels_of_tile(s) * s.read_width() * kLine * sizeof(float);
  return std::max<std::size_t>(1, kCachedBytes / row);
}

/// The unit's rows of 16 samples.
void add_parts(const Conv2dShape& s, std::size_t first_row, std::size_t rows, std::size_t first_sample,
               std::vector<GradientRows>& parts) {
  const std::size_t batch = s.batch, width = image_width(s), at_once = rows_at_once(s);
  for (std::size_t row = first_row; row < first_row + rows; row += at_once) {
    parts.push_back({.first_row = row,
                     .x = row * s.stride * width * batch + first_sample,
                     .dy = row * s.out_width() * batch + first_sample,
                     .dy_channel = batch * s.out_width() * s.out_height(),
                     .rows = std::min(at_once, first_row + rows - row)});
  }
}

/// All units of term t, in order. Lanes that a grain has no samples for are left out.
TermParts parts_of_term(const Conv2dShape& s, const GradientSplit& split, int t) {
  TermParts parts;
  const int end = std::min(split.units(), (t + 1) * split.units_of_term);
  for (int unit = t * split.units_of_term; unit < end; ++unit) {
    const int first_row = unit / split.sample_units * split.rows;
    const int rows = std::clamp(s.read_height() - first_row, 0, split.rows);
    const int first_sample = unit % split.sample_units * split.samples_of_unit();
    const int last_sample = std::min(s.batch, first_sample + split.samples_of_unit());
    for (std::size_t half = 0; half < kHalves; ++half) {
      std::vector<GradientRows>& of_half = parts[half];
      const std::size_t before = of_half.size();
      for (int n = first_sample + static_cast<int>(half * kLine); n < last_sample; n += GradientSplit::kLanes)
        add_parts(s, first_row, rows, n, of_half);
      if (of_half.size() == before) continue;  // a grain with fewer samples, or rows that are not read
      of_half[before].begins = true;
      of_half.back().ends = true;
    }
  }
  return parts;
}

/// Calls use(first, size) for each tile of `taps` taps. With a bias the first one includes that, and has fewer taps.
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

/// A term, and what it sums over.
struct Term {
  TermRange range;
  TermParts parts;
  TermParts packed;         ///< parts, of a channel of dy that pack() has copied
  std::size_t channel = 0;  ///< floats of such a channel

  Term(const Conv2dShape& s, const GradientSplit& split, int t)
      : range(range_of(s, split, t)), parts(parts_of_term(s, split, t)), packed(parts) {
    for (auto& of_half : packed) {
      for (GradientRows& part : of_half) {
        part.dy = channel;
        channel += part.rows * s.read_width() * kLine;
      }
    }
    for (auto& of_half : packed)
      for (GradientRows& part : of_half) part.dy_channel = channel;
  }

  /// Copies channel k of dy so that its pixels follow one another in the order in which tiles read them. It is
  /// [half][part][pixel]. In dy itself, pixels of 16 samples are a whole batch from each other, which caches do
  /// poorly with.
  void pack(const GradientCall& call, std::size_t k, float* to) const {
    for (const auto& of_half : parts) {
      for (const GradientRows& part : of_half) {
        const float* row = call.dy + k * part.dy_channel + part.dy;
        for (std::size_t p = 0; p < part.rows; ++p, row += call.dy_row)
          for (std::size_t q = 0; q < call.columns; ++q, to += kLine)
            for (std::size_t lane = 0; lane < kLine; lane += kVector)  // a call of memmove would show
              hn::StoreU(hn::LoadU(kTag, row + q * call.dy_column + lane), kTag, to + lane);
      }
    }
  }

 private:
  static TermRange range_of(const Conv2dShape& s, const GradientSplit& split, int t) {
    const int first = t * split.units_of_term,
              last = std::min(split.units(), first + split.units_of_term) - 1;
    const int first_row = first / split.sample_units, last_row = last / split.sample_units;
    TermRange range{first_row * split.rows, std::min(s.read_height(), (last_row + 1) * split.rows), 0,
                    s.batch};
    range.last_row = std::max(range.first_row, range.last_row);
    if (first_row < last_row) return range;
    range.first_sample = std::min(s.batch, first % split.sample_units * split.samples_of_unit());
    range.last_sample = std::min(s.batch, (last % split.sample_units + 1) * split.samples_of_unit());
    return range;
  }
};

/// Limits of what is packed at a time, and of a block of channels of it. The second-level cache holds that, and scratch
/// memory has a limit.
constexpr std::size_t kMostPackedFloats = 208 * 1024, kMostOfBlock = 96 * 1024;
constexpr std::size_t kWorthPacking = 100;  // taps; measured on a processor with AVX-512

/// Some taps that follow one another, of a block of channels. The lines of their sums lie in the first-level cache.
struct TapGroup {
  const std::size_t* taps = nullptr;
  std::size_t count = 0, channels = 0;
  bool has_bias = false, of_filters = false;

  /// Lines of a channel: those of the taps, one that is not read where tiles are filters, and the bias.
  std::size_t lines() const { return count + (has_bias ? of_filters ? 2 : 1 : 0); }
};

// These fill in one call. A copy would wait until its newest numbers are in the cache, and with it until all
// multiply-adds before are done.

/// All tiles of a group, over the same parts.
void run_tiles(GradientCall& call, const TapGroup& group, float* term, float* chain) {
  const auto run = [&](std::size_t tap, std::size_t line, GradientFunction tile) {
    call.tap = group.taps + tap;
    call.term = term + line * kLine;
    call.chain = chain + line * kLine;
    tile(call);
  };
  if (!group.of_filters) {
    call.bias = group.count * kLine;
    return for_each_tile(group.count, group.has_bias, [&](std::size_t tap, std::size_t size) {
      const bool has_bias = group.has_bias && tap == 0;
      run(tap, tap, (has_bias ? find_gradient_tile<true> : find_gradient_tile<false>)(group.channels, size));
    });
  }
  for (std::size_t tap = 0; tap < group.count; tap += kFilterTaps)
    run(tap, tap, find_filter_tile(group.channels));
  call.bias = kLine;  // after a tap that lies inside the image for all pixels: the middle one
  if (group.has_bias) run(kFilterTaps / 2, group.count, find_gradient_tile<true>(group.channels, 1));
}

/// The sums over the units of 16 lanes: lines [channel][tap], then the bias.
void add_units(GradientCall& call, const std::vector<GradientRows>& parts, std::size_t rows,
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
    run_tiles(call, group, term, chain);
    call.begins_term = call.begins_term && !ends;
  }
}

/// All units of a term, for a group of taps and a block of channels.
/// @param dw, db  of its first channel and tap
/// @param filter  numbers of dw from a channel to the next
void write_group(GradientCall& call, const Conv2dShape& s, const TermParts& parts, const TapGroup& group,
                 std::size_t filter, float* dw, float* db) {
  constexpr std::size_t kOfFilters = kFilterChannels * (kFiltersOfGroup * kFilterTaps + 2);
  constexpr std::size_t kMostLines =
      (std::max(kGradientChannels * (kTapsOfGroup + 1), kOfFilters) + 3) / 4 * 4;
  HWY_ALIGN float lines[kHalves][kMostLines * kLine];
  HWY_ALIGN float chain[kMostLines * kLine];
  float sums[kMostLines];
  call.line_channel = group.lines() * kLine;
  HWY_ALIGN static constexpr float kNoLines[kMostLines * kLine] = {};
  const float* of_half[kHalves] = {kNoLines, kNoLines};
  for (std::size_t half = 0; half < kHalves; ++half) {
    if (parts[half].empty()) continue;
    add_units(call, parts[half], rows_at_once(s), group, lines[half], chain);
    of_half[half] = lines[half];
  }
  sum_lines(of_half[0], of_half[1], group.channels * group.lines(), sums);
  for (std::size_t k = 0; k < group.channels; ++k) {
    std::copy_n(sums + k * group.lines(), group.count, dw + k * filter);
    if (group.has_bias) db[k] = sums[(k + 1) * group.lines() - 1];
  }
}

/// Output channels of a tile.
struct ChannelBlock {
  std::size_t first = 0, size = 0;
};

GradientCall gradient_call(const Conv2dShape& s) {
  const std::size_t batch = s.batch;
  GradientCall call;
  call.columns = s.read_width();
  call.x_column = batch * s.stride;
  call.x_line = batch * image_width(s);
  call.x_row = call.x_line * s.stride;
  call.x_pixel = batch;
  call.last_row = pieces(s.in_height - 1, s.stride);  // the first one with row * stride + 1 >= in_height
  call.has_right_edge = (s.read_width() - 1) * s.stride + 1 >= s.in_width;
  call.dy_row = batch * s.out_width();
  call.dy_column = batch;
  return call;
}

/// Data that all groups of a convolution share.
struct GroupGradientWriter {
  Conv2dShape shape;  ///< shape of one group
  std::vector<Term> terms;
  TermImage image;
  std::vector<std::size_t> taps;
  std::vector<ChannelBlock> blocks;  ///< blocks of output channels

  GroupGradientWriter(const Conv2dShape& s, const GradientSplit& split, Scratch& scratch)
      : shape(s.group()),
        terms(terms_of(shape, split)),
        image(shape, copies_image(shape), kTapsOfGroup, most_rows(terms), scratch),
        taps(image.tap_offsets()) {
    for_each_block(shape.out_channels, channels_of_tile(shape), [&](std::size_t first, std::size_t size) {
      blocks.push_back({first, size});
    });
  }

  void write(const float* x, const float* dy, const GradientOutput& to) {
    GradientCall call = gradient_call(shape);
    call.dy = dy;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const GradientOutput term{to.dw + t * to.term_stride, to.db + t * to.term_stride};
      call.x = image.begin(x, terms[t].range);
      for_each_block(blocks.size(), blocks_at_once(terms[t]), [&](std::size_t first, std::size_t count) {
        write_blocks(call, terms[t], std::span(blocks).subspan(first, count), term);
      });
    }
  }

 private:
  static std::vector<Term> terms_of(const Conv2dShape& s, const GradientSplit& split) {
    std::vector<Term> terms;
    for (int t = 0; t < split.terms; ++t) terms.emplace_back(s, split, t);
    return terms;
  }
  static int most_rows(const std::vector<Term>& terms) {
    int most = 0;
    for (const Term& term : terms) most = std::max(most, term.range.last_row - term.range.first_row);
    return most;
  }
  bool packs(const Term& term) const {
    return taps.size() > kWorthPacking && term.channel * channels_of_tile(shape) <= kMostOfBlock;
  }
  /// Blocks at once: as many as fit, or some that share the copy, if x is copied; otherwise one.
  std::size_t blocks_at_once(const Term& term) const {
    constexpr std::size_t kShareCopy = 4;
    const std::size_t block = std::max<std::size_t>(1, term.channel * channels_of_tile(shape));
    const std::size_t fitting = std::max<std::size_t>(1, kMostPackedFloats / block);
    if (packs(term)) return fitting;
    return shape.padding > 0 ? std::max(kShareCopy, fitting) : 1;
  }

  /// Some taps of all these blocks after the other, so that the second-level cache holds what they read.
  void write_blocks(GradientCall call, const Term& term, std::span<const ChannelBlock> some,
                    const GradientOutput& to) {
    const std::size_t filter = taps.size() / shape.in_channels;
    const std::size_t channel = std::size_t{1} * shape.batch * shape.out_width() * shape.out_height();
    const bool is_packed = packs(term);
    const float* const dy = is_packed ? packed_channels(call, term, some) : call.dy + some[0].first * channel;
    if (is_packed) call.dy_row = call.columns * kLine, call.dy_column = kLine;
    const bool of_filters = has_filter_tiles(shape);
    const std::size_t step = of_filters ? filter : 1;
    for_each_block(taps.size() / step, of_filters ? kFiltersOfGroup : kTapsOfGroup,
                   [&](std::size_t at, std::size_t size) {
                     const std::size_t tap = at * step, count = size * step;
                     image.need(tap / filter, (tap + count - 1) / filter + 1);
                     for (const ChannelBlock& block : some) {
                       call.dy = dy + (block.first - some[0].first) * (is_packed ? term.channel : channel);
                       write_group(call, shape, is_packed ? term.packed : term.parts,
                                   {taps.data() + tap, count, block.size, tap == 0, of_filters}, taps.size(),
                                   to.dw + block.first * taps.size() + tap, to.db + block.first);
                     }
                   });
  }
  const float* packed_channels(const GradientCall& call, const Term& term,
                               std::span<const ChannelBlock> some) const {
    static thread_local Scratch scratch;
    const std::size_t first = some.front().first, last = some.back().first + some.back().size;
    float* const packed = scratch.floats(term.channel * (last - first));
    for (std::size_t k = first; k < last; ++k) term.pack(call, k, packed + (k - first) * term.channel);
    return packed;
  }
};

}  // namespace

void call_backward_weights(const Conv2dShape& s, const GradientSplit& split, const float* x, const float* dy,
                           GradientOutput to) {
  static thread_local Scratch scratch;
  // A few channels read x as often as it would be copied.
  const bool skips = skips_pixels(s) && s.group_outputs() > 2 * static_cast<int>(kGradientChannels);
  GroupGradientWriter group(skips ? without_skipped(s) : s, split, scratch);
  const Conv2dShape of_group = s.group();
  for (int g = 0; g < s.groups; ++g) {
    group.write(skips ? copy_read_pixels(of_group, x, scratch) : x, dy, to);
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
