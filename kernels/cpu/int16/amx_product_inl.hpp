// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Forward pass and data gradient on tiles: 16 targets x 16 samples of one pixel, 64 terms at a time.
///
/// The source is packed 16 samples after the other: [row][column][channel / 4][16 samples][4 channels]. High and low
/// digits are separate. So the taps of one row, where they are neighbours, are one run of lines of 64 bytes, cut
/// into tiles wherever a tile is full. A run's last tile reaches into what follows, times weights that are zero.
/// If channels are few, the rows of taps become channels, too (is_folded), and each row of the target has a row of the
/// packed source: 3 channels and 7 x 7 taps are 21 channels and one row of 7 taps, three tiles in place of seven.
#pragma once

#include "kernels/cpu/int16/amx_tiles_inl.hpp"

#include <cstring>

namespace lockstep::cpu::int16 {
namespace {

/// A group's cut into runs and tiles.
struct ProductPlan {
  /// Taps of one row of the filter that are packed together.
  struct Piece {
    int tap = 0, count = 0;
    std::size_t tile = 0, tiles = 0;  ///< in the row's weights
  };
  /// A piece, and the packed column that it begins at.
  struct TapRun {
    int column = 0;
    std::size_t tile = 0, tiles = 0;
  };

  explicit ProductPlan(const Correlation& c)
      : is_merged(c.source_step == 1 || c.kernel_columns == 1), is_folded(folds(c)) {
    rows_of_channel = is_folded ? c.kernel_rows : 1;
    row_taps = is_folded ? 1 : c.kernel_rows;
    source_rows = is_folded ? static_cast<int>(c.rows.size()) : c.source_rows;
    quads = (c.sources * rows_of_channel + 3) / 4;
    is_merged = is_merged && quads % kSide != 0;  // else a tile holds one tap, and all runs share the weights
    if (!is_merged)
      for (int t = 0; t < c.kernel_columns; ++t) add_piece({t, 1});
    columns.reserve(c.columns.size());
    for (const TapRange& range : c.columns) columns.push_back(runs_of(c, range));
  }

  bool is_merged = false, is_folded = false;
  std::size_t rows_of_channel = 1, row_taps = 1, source_rows = 0, quads = 0;
  std::size_t tiles_of_row = 0;
  std::vector<Piece> pieces;
  std::vector<std::vector<TapRun>> columns;  ///< [column of the target]

  std::size_t source_words(const Correlation& c) const {
    return (source_rows * c.source_columns * quads + kSide) * kSide;
  }
  /// Those of 16 targets.
  std::size_t weight_words() const { return row_taps * tiles_of_row * 2 * kTile; }

 private:
  std::size_t tiles_of(std::size_t channels, int taps) const {
    const std::size_t of_tap = (channels + 3) / 4;
    return is_merged ? (of_tap * taps + kSide - 1) / kSide : (of_tap + kSide - 1) / kSide * taps;
  }
  bool folds(const Correlation& c) const {
    const std::size_t sources = c.sources, rows = c.kernel_rows;
    return 2 * tiles_of(sources * rows, c.kernel_columns) <= rows * tiles_of(sources, c.kernel_columns);
  }
  const Piece& add_piece(Piece piece) {
    piece.tile = tiles_of_row;
    piece.tiles = (piece.count * quads + kSide - 1) / kSide;
    tiles_of_row += piece.tiles;
    return pieces.emplace_back(piece);
  }
  std::vector<TapRun> runs_of(const Correlation& c, const TapRange& range) {
    std::vector<TapRun> runs;
    if (is_merged && range.count > 0) {
      const auto found = std::ranges::find_if(
          pieces, [&](const Piece& piece) { return piece.tap == range.tap && piece.count == range.count; });
      const Piece piece = found != pieces.end() ? *found : add_piece({range.tap, range.count});
      runs.push_back({range.source, piece.tile, piece.tiles});
    } else {
      for (int i = 0; i < range.count; ++i) {
        const Piece& piece = pieces[range.tap + i * c.tap_step];
        runs.push_back({range.source + i * c.source_step, piece.tile, piece.tiles});
      }
    }
    return runs;
  }
};

/// Rounded weights to the digits of a row of tiles, term after term.   @param places  places of the terms in q
inline void pack_terms(const float* q, const std::vector<std::int32_t>& places, std::size_t term,
                       Word* tiles) {
  for (std::size_t first = 0, some = 0; first < places.size(); first += some, term += some) {
    some = std::min(places.size() - first, kTerms - term % kTerms);
    std::int8_t high[kTerms], low[kTerms];
    for (std::size_t i = 0; i < some; ++i) {
      const auto v = static_cast<std::int32_t>(q[places[first + i]]);
      high[i] = static_cast<std::int8_t>(high_digit(v));
      low[i] = static_cast<std::int8_t>(v);
    }
    auto* const to = reinterpret_cast<std::int8_t*>(tiles + term / kTerms * 2 * kTile) + term % kTerms;
    std::memcpy(to, high, some);
    std::memcpy(to + kTile * sizeof(Word), low, some);
  }
}

/// Rounded weights as [target][source][tap]: they are, or become so in `ordered`, some targets at a time.
const float* weights_by_target(const Correlation& c, const float* q, float* ordered) {
  const std::ptrdiff_t taps = std::ptrdiff_t{c.kernel_rows} * c.kernel_columns, targets = c.targets;
  if (c.weight_source == taps) return q;
  constexpr std::ptrdiff_t kTargets = 16;  // streams of a first-level cache
  for (std::ptrdiff_t k = 0; k < targets; k += kTargets)
    for (std::ptrdiff_t s = 0; s < c.sources; ++s)
      for (std::ptrdiff_t i = k; i < std::min(k + kTargets, targets); ++i)
        std::copy_n(q + i * c.weight_target + s * c.weight_source, taps,
                    ordered + (i * c.sources + s) * taps);
  return ordered;
}

/// @param q       [target][source][tap], rounded
/// @param packed  [target / 16][row of taps][tile][high, low][16 targets][64 terms]
void pack_weights(const Correlation& c, const ProductPlan& plan, const float* q, Word* packed) {
  const std::size_t targets = c.targets;
  const int taps = c.kernel_rows * c.kernel_columns;
  std::fill_n(packed, (targets + kSide - 1) / kSide * plan.weight_words(), 0);
  std::vector<std::int32_t> places;
  for (int s = 0; s < c.sources; ++s)
    for (int i = 0; i < static_cast<int>(plan.rows_of_channel); ++i)
      places.push_back(s * taps + i * c.kernel_columns);
  for (std::size_t k = 0; k < targets; ++k) {
    for (std::size_t r = 0; r < plan.row_taps; ++r) {
      const float* const of_row = q + k * c.filter() + r * c.kernel_columns;
      Word* const tiles =
          packed + k / kSide * plan.weight_words() + r * plan.tiles_of_row * 2 * kTile + k % kSide * kSide;
      for (const ProductPlan::Piece& piece : plan.pieces)
        for (int t = 0; t < piece.count; ++t)
          pack_terms(of_row + piece.tap + t * c.tap_step, places, t * plan.quads * 4,
                     tiles + piece.tile * 2 * kTile);
    }
  }
}

/// One pixel of four channels, 16 samples.
inline void pack_quad(const ChannelRow* four, std::size_t pixel, const float* first, const float* second,
                      Word* high, Word* low) {
  const float *const a = four[0].numbers + pixel * four[0].step,
                     *const b = four[1].numbers + pixel * four[1].step,
                     *const c = four[2].numbers + pixel * four[2].step,
                     *const d = four[3].numbers + pixel * four[3].step;
  for (std::size_t n = 0; n < kSide; ++n) {
    const std::int32_t q0 = rounded(a[n], first[n], second[n]), q1 = rounded(b[n], first[n], second[n]),
                       q2 = rounded(c[n], first[n], second[n]), q3 = rounded(d[n], first[n], second[n]);
    high[n] = word_of(high_digit(q0), high_digit(q1), high_digit(q2), high_digit(q3));
    low[n] = word_of(q0, q1, q2, q3);
  }
}

/// The samples [n, n + 16).
void pack_source(const GroupProduct& p, const ProductPlan& plan, std::size_t n, Word* high, Word* low) {
  const Correlation& c = p.shape;
  const std::size_t pixels = c.source_columns;
  std::vector<ChannelRow> channels;
  for (std::size_t row = 0; row < plan.source_rows; ++row) {
    channels.assign(plan.quads * 4, {});
    const TapRange range = plan.is_folded ? c.rows[row] : TapRange{static_cast<int>(row), 0, 1};
    for (std::size_t s = 0; s < p.sources(); ++s)
      for (int i = 0; i < range.count; ++i) {
        const std::size_t at = s * c.source_rows + range.source + i * c.source_step;
        channels[s * plan.rows_of_channel + range.tap + i * c.tap_step] = {
            p.source + at * pixels * p.batch() + n, p.batch()};
      }
    for (std::size_t quad = 0; quad < plan.quads; ++quad) {
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        const std::size_t line = ((row * pixels + pixel) * plan.quads + quad) * kSide;
        pack_quad(&channels[quad * 4], pixel, p.of_source.first.data() + n, p.of_source.second.data() + n,
                  high + line, low + line);
      }
    }
  }
}

/// The one rounding of a sum, which a double holds, and the bias.
template <class Tiles>
void store_targets(const GroupProduct& p, const SumTiles<Tiles>& sums, std::size_t first, std::size_t pixel,
                   std::size_t n) {
  const std::size_t targets = p.shape.targets, channel = p.shape.target_channel();
  const double* const units = p.units + n;
  for (std::size_t k = first; k < std::min(first + kSide, targets); ++k) {
    float* const to = p.target + k * channel + pixel * p.batch() + n;
    const float bias = p.bias == nullptr ? 0.0F : p.bias[k];
    for (std::size_t i = 0; i < kSide; ++i)
      to[i] = static_cast<float>(static_cast<double>(sums.total((k - first) * kSide + i)) * units[i]) + bias;
  }
}

/// The engine's correlate().
template <class Tiles>
void correlate_on_tiles(const GroupProduct& p) {
  const Correlation& c = p.shape;
  const ProductPlan plan(c);
  const std::size_t targets = c.targets;
  auto* const rounded_weights = scratch<float, ScratchUse::kRounded>(p.filters());
  auto* const weights =
      scratch<Word, ScratchUse::kWeights>((targets + kSide - 1) / kSide * plan.weight_words());
  auto* const high = scratch<Word, ScratchUse::kSource>(plan.source_words(c));
  auto* const low = scratch<Word, ScratchUse::kLowSource>(plan.source_words(c));
  round_all(p.filters(), p.weights, p.of_weights, rounded_weights);
  pack_weights(c, plan,
               weights_by_target(c, rounded_weights, scratch<float, ScratchUse::kWeights>(p.filters())),
               weights);
  const std::size_t row_words = c.source_columns * plan.quads * kSide;
  SumTiles<Tiles> sums;
  for (std::size_t n = 0; n < p.batch(); n += kSide) {
    pack_source(p, plan, n, high, low);
    const TilesInUse<Tiles> tiles;
    for (std::size_t k = 0; k < targets; k += kSide) {
      const Word* const of_targets = weights + k / kSide * plan.weight_words();
      for (std::size_t row = 0, pixel = 0; row < c.rows.size(); ++row) {
        const TapRange range = plan.is_folded ? TapRange{static_cast<int>(row), 0, 1} : c.rows[row];
        for (std::size_t column = 0; column < c.columns.size(); ++column, ++pixel) {
          sums.clear();
          for (int i = 0; i < range.count; ++i) {
            const std::size_t from = (range.source + i * c.source_step) * row_words;
            const Word* const of_row =
                of_targets + (range.tap + i * c.tap_step) * plan.tiles_of_row * 2 * kTile;
            for (const ProductPlan::TapRun& run : plan.columns[column]) {
              const std::size_t line = from + run.column * plan.quads * kSide;
              sums.add(of_row + run.tile * 2 * kTile, high + line, low + line, run.tiles);
            }
          }
          sums.finish();
          store_targets(p, sums, k, pixel, n);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::cpu::int16
