// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Windows and pixels of a pool as its kernels walk over them. A thread has one output, or one input, of
/// kWidth neighbouring samples.
#pragma once

#include "common/error.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/shapes.hpp"

#include <gpu/launch.cuh>

#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

/// A kernel's pool: sizes with their divisors.
struct PoolPlan {
  Divisor columns;  ///< packs of samples in a row of the batch
  Divisor in_height, in_width, out_height, out_width, stride;
  int kernel, padding;
  std::size_t batch;
  std::uint32_t outputs, inputs;  ///< in packs: threads of the forward and of the backward kernel
};

inline PoolPlan plan_of(const Pool2dShape& shape, int width) {
  LOCKSTEP_CHECK(shape.kernel <= 16);  // or argmax does not fit a byte
  return {.columns = Divisor(shape.batch / width),
          .in_height = Divisor(shape.in_height),
          .in_width = Divisor(shape.in_width),
          .out_height = Divisor(shape.out_height()),
          .out_width = Divisor(shape.out_width()),
          .stride = Divisor(shape.stride),
          .kernel = shape.kernel,
          .padding = shape.padding,
          .batch = static_cast<std::size_t>(shape.batch),
          .outputs = thread_count(shape.out_size() / static_cast<std::size_t>(width)),
          .inputs = thread_count(shape.in_size() / static_cast<std::size_t>(width))};
}

/// Calls run.template operator()<K>(), where K is the side of a small window without padding, or else 0.
template <typename Run>
void with_kernel_size(const Pool2dShape& shape, const Run& run) {
  if (shape.padding == 0 && shape.kernel == 2) return run.template operator()<2>();
  if (shape.padding == 0 && shape.kernel == 3) return run.template operator()<3>();
  run.template operator()<0>();
}

/// A pixel of an image of a pack of samples.
struct PoolPlace {
  int channel, row, column;
  std::uint32_t sample;  ///< the first of the pack
};

template <int kWidth>
__device__ inline PoolPlace pool_place(std::uint32_t thread, const Divisor& columns, const Divisor& height,
                                       const Divisor& width) {
  const Division pixel = divide(thread, columns);
  const Division row = divide(pixel.quotient, width);
  const Division channel = divide(row.quotient, height);
  return {static_cast<int>(channel.quotient), static_cast<int>(channel.remainder),
          static_cast<int>(row.remainder), pixel.remainder * kWidth};
}

struct PoolRange {
  int begin, end;
};

/// Taps of a window, along one dimension, that lie inside the image; tap t is pixel origin + t.
__device__ inline PoolRange taps_inside(int origin, int kernel, int size) {
  return {origin < 0 ? -origin : 0, size - origin < kernel ? size - origin : kernel};
}

/// Calls body(tap, offset) for the taps of an output that lie inside the image, in row-major order. tap is
/// row * kernel + column, offset its place in x. kKernel other than 0 is for pools of that size without
/// padding: all taps lie inside.
template <int kKernel, typename Body>
__device__ inline void for_each_tap(const PoolPlan& plan, const PoolPlace& place, const Body& body) {
  const int height = static_cast<int>(plan.in_height.value), width = static_cast<int>(plan.in_width.value);
  const int stride = static_cast<int>(plan.stride.value);
  const int kernel = kKernel > 0 ? kKernel : plan.kernel;
  const int top = place.row * stride - plan.padding, left = place.column * stride - plan.padding;
  const PoolRange inside = {0, kKernel};
  const PoolRange rows = kKernel > 0 ? inside : taps_inside(top, kernel, height);
  const PoolRange columns = kKernel > 0 ? inside : taps_inside(left, kernel, width);
#pragma unroll
  for (int r = rows.begin; r < rows.end; ++r) {
#pragma unroll
    for (int s = columns.begin; s < columns.end; ++s) {
      const int pixel = (place.channel * height + top + r) * width + left + s;
      body(r * kernel + s, static_cast<std::size_t>(pixel) * plan.batch + place.sample);
    }
  }
}

/// Windows, along one dimension, that cover a pixel.
__device__ inline PoolRange windows_over(const PoolPlan& plan, int pixel, const Divisor& windows) {
  const int padded = pixel + plan.padding;
  const int before = padded - plan.kernel;  // the last pixel of windows that end too early
  const int first = before < 0 ? 0 : static_cast<int>(divide(before, plan.stride).quotient) + 1;
  const int end = static_cast<int>(divide(padded, plan.stride).quotient) + 1;
  const int size = static_cast<int>(windows.value);
  return {first, end < size ? end : size};
}

/// Calls body(tap, offset) for the windows that cover an input, in row-major order. tap is the input's
/// position in the window, offset the place of the window's output in y.
template <typename Body>
__device__ inline void for_each_window_over(const PoolPlan& plan, const PoolPlace& place, const Body& body) {
  const int height = static_cast<int>(plan.out_height.value), width = static_cast<int>(plan.out_width.value);
  const int stride = static_cast<int>(plan.stride.value);
  const PoolRange rows = windows_over(plan, place.row, plan.out_height);
  const PoolRange columns = windows_over(plan, place.column, plan.out_width);
  for (int p = rows.begin; p < rows.end; ++p) {
    const int r = place.row + plan.padding - p * stride;
    for (int q = columns.begin; q < columns.end; ++q) {
      const int s = place.column + plan.padding - q * stride;
      const int window = (place.channel * height + p) * width + q;
      body(r * plan.kernel + s, static_cast<std::size_t>(window) * plan.batch + place.sample);
    }
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
