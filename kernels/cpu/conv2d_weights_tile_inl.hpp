// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The register tile of the weight gradient: several output channels times several taps, summed over pixels
/// and samples.
///
/// One step loads T vectors of x and K vectors of dy and makes K * T multiply-adds; 5 x 5 keep 31 registers
/// busy and need 10 loads for 25 multiply-adds.
#include "kernels/cpu/lanes_inl.hpp"

#include <array>
#include <cstddef>
#include <utility>

#if defined(LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP
#undef LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP
#else
#define LOCKSTEP_CPU_CONV2D_WEIGHTS_TILE_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// The largest tile: output channels, taps without and with the bias gradient on top (which takes a register
/// for each channel, though no multiplier).
inline constexpr std::size_t kGradientChannels = kManyRegisters ? 5 : 3;
inline constexpr std::size_t kGradientTaps = kManyRegisters ? 5 : 3;
inline constexpr std::size_t kGradientTapsWithBias = kManyRegisters ? 4 : 3;

/// One run of the tile over a range of rows. Each (channel, tap) adds to its own line of 16 partial sums.
struct GradientCall {
  std::size_t rows = 0;        ///< output rows
  std::size_t columns = 0;     ///< output columns, or 1 if a whole row is one run of neighbours (stride 1)
  std::size_t run = 0;         ///< floats in a run: samples of a pixel, or of a whole row
  std::size_t x_row = 0;       ///< floats from one output row to the next, in x
  std::size_t x_column = 0;    ///< likewise for columns
  std::size_t dy_channel = 0;  ///< floats from one output channel to the next, in dy
  const float* x = nullptr;
  const float* dy = nullptr;         ///< rows * columns * run neighbours in each channel
  const std::size_t* tap = nullptr;  ///< offset of each tap in x, in floats
  float* partial = nullptr;          ///< the line of the first channel and tap; taps follow one another
  std::size_t partial_channel = 0;   ///< floats from one channel to the next, in `partial`
  float* bias = nullptr;  ///< the line of the first channel's bias, same step; used by tiles with bias
};

template <std::size_t K, std::size_t T, bool kBias>
struct GradientTile {
  Lanes sum[K][T];
  Lanes bias[K];

  HWY_INLINE void load(const GradientCall& call, std::size_t lane) {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) {
        sum[k][t] = hn::LoadU(kTag, call.partial + k * call.partial_channel + t * kLine + lane);
      }
      if constexpr (kBias) bias[k] = hn::LoadU(kTag, call.bias + k * call.partial_channel + lane);
    }
  }

  HWY_INLINE void store(const GradientCall& call, std::size_t lane) const {
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) {
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) {
        hn::StoreU(sum[k][t], kTag, call.partial + k * call.partial_channel + t * kLine + lane);
      }
      if constexpr (kBias) hn::StoreU(bias[k], kTag, call.bias + k * call.partial_channel + lane);
    }
  }

  /// Adds the products of the samples i, i + 16, ... of one run.
  HWY_INLINE void add_run(const float* const (&x)[T], const float* const (&dy)[K], std::size_t run) {
    for (std::size_t i = 0; i < run; i += kLine) {
      Lanes source[T];
      LOCKSTEP_UNROLL
      for (std::size_t t = 0; t < T; ++t) source[t] = hn::LoadU(kTag, x[t] + i);
      LOCKSTEP_UNROLL
      for (std::size_t k = 0; k < K; ++k) {
        const Lanes gradient = hn::LoadU(kTag, dy[k] + i);
        LOCKSTEP_UNROLL
        for (std::size_t t = 0; t < T; ++t) sum[k][t] = hn::MulAdd(gradient, source[t], sum[k][t]);
        if constexpr (kBias) bias[k] = hn::Add(bias[k], gradient);
      }
    }
  }
};

template <std::size_t K, std::size_t T, bool kBias>
HWY_NOINLINE void run_gradient_tile(const GradientCall& call) {
  for (std::size_t lane = 0; lane < kLine; lane += kVector) {
    GradientTile<K, T, kBias> tile;
    tile.load(call, lane);
    const float* dy[K];
    LOCKSTEP_UNROLL
    for (std::size_t k = 0; k < K; ++k) dy[k] = call.dy + k * call.dy_channel + lane;
    for (std::size_t p = 0; p < call.rows; ++p) {
      for (std::size_t q = 0; q < call.columns; ++q) {
        const float* x[T];
        LOCKSTEP_UNROLL
        for (std::size_t t = 0; t < T; ++t)
          x[t] = call.x + call.tap[t] + p * call.x_row + q * call.x_column + lane;
        tile.add_run(x, dy, call.run);
        LOCKSTEP_UNROLL
        for (std::size_t k = 0; k < K; ++k) dy[k] += call.run;
      }
    }
    tile.store(call, lane);
  }
}

using GradientFunction = void (*)(const GradientCall&);

template <std::size_t K, bool kBias, std::size_t... T>
constexpr std::array<GradientFunction, sizeof...(T)> gradient_row(std::index_sequence<T...> /*unused*/) {
  return {&run_gradient_tile<K, T + 1, kBias>...};
}

template <bool kBias, std::size_t kTaps, std::size_t... K>
constexpr auto gradient_table(std::index_sequence<K...> /*unused*/) {
  return std::array{gradient_row<K + 1, kBias>(std::make_index_sequence<kTaps>())...};
}

/// The tile for that many channels and taps, each at least 1 and at most the constants above.
inline GradientFunction find_gradient_tile(std::size_t channels, std::size_t taps, bool bias) {
  using Channels = std::make_index_sequence<kGradientChannels>;
  static constexpr auto kPlain = gradient_table<false, kGradientTaps>(Channels());
  static constexpr auto kWithBias = gradient_table<true, kGradientTapsWithBias>(Channels());
  return bias ? kWithBias[channels - 1][taps - 1] : kPlain[channels - 1][taps - 1];
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the toggled guard
