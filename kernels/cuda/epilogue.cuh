// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The epilogue as a part of other kernels. A thread applies it to the window of outputs it has computed,
/// and spreads a gradient over the window it came from.
#pragma once

#include "kernels/device_epilogue.hpp"
#include "kernels/numerics/random.hpp"

#include <gpu/launch.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

inline bool has_dropout(const Epilogue& epilogue) {
  return std::any_of(epilogue.steps, epilogue.steps + epilogue.count,
                     [](const EpilogueStep& step) { return step.kind == EpilogueKind::kDropout; });
}

/// Place of an epilogue's window in [channels, height, width]. The pool window is at (row, column) of
/// the pooled image. Also the column of the batch.
struct WindowPlace {
  int height = 0, width = 0;  ///< before the pool
  int channel = 0;
  int row = 0, column = 0;  ///< those of the pooled image
  int sample = 0;           ///< column of the batch
};

struct EpilogueResult {
  float y;
  std::uint8_t mask;
};

/// The random numbers that a thread drew last; they decide four neighbouring units of one layer and sample. A
/// thread with several windows keeps one of these from call to call, and draws less.
struct LastDraw {
  std::uint32_t block = 0, sample = 0, stream = 0;  ///< Philox counter; no stream is 0
  Philox4 words = {};
};

/// The units that the elements of a window belong to. Element (r, s): first + r * down + s * right.
struct WindowUnits {
  std::uint32_t first, down, right;
};

template <int kPool>
__device__ inline WindowUnits units_of_window(bool whole_channels, const WindowPlace& place, bool pooled) {
  if (whole_channels) return {static_cast<std::uint32_t>(place.channel), 0, 0};
  const int pool = pooled ? 1 : kPool;  // NOLINT(bugprone-branch-clone): kPool may be 1, too
  const int height = pooled ? place.height / kPool : place.height;
  const int width = pooled ? place.width / kPool : place.width;
  const int first = (place.channel * height + place.row * pool) * width + place.column * pool;
  if (pool == 1) return {static_cast<std::uint32_t>(first), 0, 0};
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(width), 1};
}

/// epilogue.steps[i]. Kernel parameters cannot be indexed by a variable: they would be copied to local
/// memory.
__device__ inline EpilogueStep step_at(const Epilogue& epilogue, int i) {
  EpilogueStep step = epilogue.steps[0];
#pragma unroll
  for (int k = 1; k < Epilogue::kMaxSteps; ++k) {
    if (i == k) step = epilogue.steps[k];
  }
  return step;
}

/// Constants of all units of a window: the key of Philox and the last three words of its counter.
struct DropoutStream {
  std::uint64_t seed;
  std::uint32_t sample, stream, step;
};

/// The 32 random bits of a unit. An array indexed by a variable would lie in local memory too.
__device__ inline std::uint32_t bits_of_unit(const DropoutStream& from, std::uint32_t unit, LastDraw& last) {
  const std::uint32_t block = unit / 4;
  if (block != last.block || from.sample != last.sample || from.stream != last.stream) {
    last = {block, from.sample, from.stream,
            philox(from.seed, {{block, from.sample, from.stream, from.step}})};
  }
  const std::uint32_t(&words)[4] = last.words.value;
  const std::uint32_t even = (unit & 2) == 0 ? words[0] : words[2];
  const std::uint32_t odd = (unit & 2) == 0 ? words[1] : words[3];
  return (unit & 1) == 0 ? even : odd;
}

/// Bit (row * pool + column) is set where dropout keeps that element of the window.
template <int kPool>
__device__ inline unsigned kept_elements(const DropoutStream& from, const WindowUnits& units,
                                         float probability, LastDraw& last) {
  // dropout_threshold() without doubles: the product is exact in fp32 too.
  const auto threshold = static_cast<std::uint32_t>(probability * 4294967296.0F);
  if (units.right == 0) {
    constexpr unsigned kAll = (1U << (kPool * kPool)) - 1;
    return bits_of_unit(from, units.first, last) < threshold ? 0 : kAll;
  }
  unsigned kept = 0;
#pragma unroll 1
  for (unsigned k = 0; k < kPool * kPool; ++k) {
    const std::uint32_t unit = units.first + k / kPool * units.down + k % kPool * units.right;
    kept |= bits_of_unit(from, unit, last) < threshold ? 0U : 1U << k;
  }
  return kept;
}

/// A window on its way through the steps. Once it is pooled, only v[0] counts.
template <int kPool>
struct PooledWindow {
  static constexpr int kElements = kPool * kPool;
  static constexpr unsigned kAll = (1U << kElements) - 1;
  float v[kElements];
  unsigned passes = kAll;  ///< the mask so far
  bool pooled = kPool == 1;
};

/// Negative numbers become 0, NaN stays NaN.
__device__ inline float relu_of(float v) {
  return v < 0 ? 0.0F : v;
}

/// The derivative is 1 where the result is positive.
template <int kPool>
__device__ inline void apply_relu(PooledWindow<kPool>& window) {
  if (window.pooled) {
    window.v[0] = relu_of(window.v[0]);
    if (!(window.v[0] > 0)) window.passes = 0;
    return;
  }
  unsigned positive = 0;
#pragma unroll
  for (int k = 0; k < kPool * kPool; ++k) {
    window.v[k] = relu_of(window.v[k]);
    positive |= window.v[k] > 0 ? 1U << k : 0U;
  }
  window.passes &= positive;
}

template <int kPool>
__device__ inline void apply_dropout(unsigned kept, float probability, PooledWindow<kPool>& window) {
  const float scale = 1 / (1 - probability);
#pragma unroll
  for (int k = 0; k < kPool * kPool; ++k) window.v[k] = (kept >> k & 1) != 0 ? window.v[k] * scale : 0.0F;
  window.passes &= kept;
}

/// The first of equals wins, and NaN beats every number.
template <int kPool>
__device__ inline void apply_max_pool(PooledWindow<kPool>& window) {
  float best = window.v[0];
  unsigned winner = 1;
#pragma unroll
  for (int k = 1; k < kPool * kPool; ++k) {
    const float v = window.v[k];
    const bool wins = v > best || v != v;
    best = wins ? v : best;
    winner = wins ? 1U << k : winner;
  }
  window.v[0] = best;
  window.passes &= winner;
  window.pooled = true;
}

template <int kPool>
__device__ inline void apply_avg_pool(PooledWindow<kPool>& window) {
  float sum = window.v[0];
#pragma unroll
  for (int k = 1; k < kPool * kPool; ++k) sum += window.v[k];
  window.v[0] = sum * (1.0F / (kPool * kPool));
  window.pooled = true;
}

/// Anything but dropout.
template <int kPool>
__device__ inline void apply_simple(EpilogueKind kind, PooledWindow<kPool>& window) {
  if (kPool == 1 || kind == EpilogueKind::kRelu) {
    apply_relu(window);
  } else if (kind == EpilogueKind::kMaxPool) {
    apply_max_pool(window);
  } else {
    apply_avg_pool(window);
  }
}

/// The first steps up to a dropout are unrolled. Finding out what step i is would cost more than doing it,
/// and a small convolution no more than both.
///
/// @param v     the numbers of the window, row by row
/// @param step  StepState::step
/// @param last  carried from window to window of a thread, best with the sample fixed and channels in order
template <int kPool>
__device__ inline EpilogueResult run_epilogue(const Epilogue& epilogue, std::uint32_t step,
                                              const WindowPlace& place, const float (&v)[kPool * kPool],
                                              LastDraw& last) {
  constexpr int kUnrolled = 3;
  PooledWindow<kPool> window;
#pragma unroll
  for (int k = 0; k < kPool * kPool; ++k) window.v[k] = v[k];
  int done = 0;
#pragma unroll
  for (; done < kUnrolled; ++done) {
    if (done == epilogue.count || epilogue.steps[done].kind == EpilogueKind::kDropout) break;
    apply_simple(epilogue.steps[done].kind, window);
  }
#pragma unroll 1
  for (; done < epilogue.count; ++done) {
    const EpilogueStep layer = step_at(epilogue, done);
    if (layer.kind != EpilogueKind::kDropout) {
      apply_simple(layer.kind, window);
      continue;
    }
    const DropoutStream from = {epilogue.seed,
                                epilogue.first_sample + static_cast<std::uint32_t>(place.sample),
                                random_stream(RandomUse::kDropout, layer.layer), step};
    const WindowUnits units = units_of_window<kPool>(layer.whole_channels, place, window.pooled);
    apply_dropout(kept_elements<kPool>(from, units, layer.probability, last), layer.probability, window);
  }
  return {window.v[0], static_cast<std::uint8_t>(window.passes)};
}

/// Writes `gradient` where the mask passes it and 0 elsewhere to the window of `place`. Writes 0 to what lies
/// beyond the last window to the right and below, if this is the last one there. Height and width are those
/// of `expand`.
///
/// @param corner        the first element of the window in dx
/// @param pixel_stride  from a pixel to the next one in dx
template <int kPool>
__device__ inline void store_window(const EpilogueBackward& expand, const WindowPlace& place, unsigned mask,
                                    float gradient, std::size_t pixel_stride, float* corner) {
  const std::size_t row_stride = static_cast<std::size_t>(expand.width) * pixel_stride;
#pragma unroll
  for (int k = 0; k < kPool * kPool; ++k) {
    const bool passes = (mask >> k & 1) != 0;
    corner[k / kPool * row_stride + k % kPool * pixel_stride] = passes ? gradient : 0.0F;
  }
  if constexpr (kPool > 1) {
    const bool is_bottom = place.row + 1 == expand.height / kPool;
    const bool is_right = place.column + 1 == expand.width / kPool;
    const int bottom = is_bottom ? expand.height - place.row * kPool : kPool;
    const int right = is_right ? expand.width - place.column * kPool : kPool;
    if (bottom == kPool && right == kPool) return;
#pragma unroll 1
    for (int h = 0; h < bottom; ++h) {
#pragma unroll 1
      for (int w = h < kPool ? kPool : 0; w < right; ++w) corner[h * row_stride + w * pixel_stride] = 0;
    }
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
