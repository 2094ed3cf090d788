// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Average-pooling: of windows, and of whole channels.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/pool.cuh"
#include "kernels/cuda/threads.cuh"
#include "kernels/sum_cuts.hpp"

namespace lockstep::LOCKSTEP_GPU {

// Average-pooling alone, of any window. The 2 x 2 pool after a convolution is part of its kernel
// instead.
//
// Versions, see max_pool.cu. First a thread for each output, and atomic additions backward. Now a gather by
// threads of four samples, in the CPU's order of additions, without divisions, 2 x 2 and 3 x 3 unrolled.
//
// Limit, forward and back together, 2 launches, x is read, dx written, y and dy once.
// Net's first pool, batch 64, were it an average (10 @ 24 x 24): 3.7 MB, in L2: 0.7 us. LeNet's, batch 256
// (20 @ 26 x 26): 35 MB: 6.9 us from L2, 10.5 us from HBM.

namespace {

/// The share of one tap in the average; padding counts too.
float share_of_tap(const Pool2dShape& shape) {
  return 1.0F / static_cast<float>(shape.kernel * shape.kernel);
}

template <int kWidth, int kKernel>
__global__ void forward(PoolPlan plan, float share, const float* x, float* y) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.outputs) return;
  const PoolPlace place = pool_place<kWidth>(thread, plan.columns, plan.out_height, plan.out_width);
  Pack<float, kWidth> sum = {};
  for_each_tap<kKernel>(plan, place, [&](int /*tap*/, std::size_t offset) {
    const Pack<float, kWidth> pixel = load_pack<kWidth>(x + offset);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum.at[i] += pixel.at[i];
  });
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sum.at[i] *= share;
  store_pack(y + std::size_t{thread} * kWidth, sum);
}

template <int kWidth>
__global__ void backward(PoolPlan plan, float share, const float* dy, float* dx) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.inputs) return;
  const PoolPlace place = pool_place<kWidth>(thread, plan.columns, plan.in_height, plan.in_width);
  Pack<float, kWidth> sum = {};
  for_each_window_over(plan, place, [&](int /*tap*/, std::size_t offset) {
    const Pack<float, kWidth> gradient = load_pack<kWidth>(dy + offset);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum.at[i] += gradient.at[i] * share;
  });
  store_pack(dx + std::size_t{thread} * kWidth, sum);
}

}  // namespace

void NativeOps::avg_pool_forward(Stream& stream, const Pool2dShape& shape, const float* x, float* y) {
  const auto run = [&]<int kWidth>() {
    const PoolPlan plan = plan_of(shape, kWidth);
    with_kernel_size(shape, [&]<int kKernel>() {
      launch(on(stream), thread_each(plan.outputs), forward<kWidth, kKernel>, plan, share_of_tap(shape), x,
             y);
    });
  };
  run_in_packs<4>(run, static_cast<std::size_t>(shape.batch), x, y);
}

void NativeOps::avg_pool_backward(Stream& stream, const Pool2dShape& shape, const float* dy, float* dx) {
  const auto run = [&]<int kWidth>() {
    const PoolPlan plan = plan_of(shape, kWidth);
    launch(on(stream), thread_each(plan.inputs), backward<kWidth>, plan, share_of_tap(shape), dy, dx);
  };
  run_in_packs<4>(run, static_cast<std::size_t>(shape.batch), dy, dx);
}

// Windows of an adaptive pool. A thread for each output, and for each pixel a gather, in the CPU's order of additions.
//
// Limit, forward and back together, 2 launches, x is read, dx written. 64 channels of 14 x 14 to 7 x 7, batch 128:
// 12.8 MB, in L2: 2.5 us.

namespace {

struct AdaptivePlan {
  std::uint32_t threads = 0;
  Divisor columns, width, height;  ///< divisors of a thread's number
  AdaptivePoolShape shape;
};

AdaptivePlan plan_of(const AdaptivePoolShape& shape, std::size_t size, int height, int width) {
  return {thread_count(size), Divisor(shape.batch), Divisor(width), Divisor(height), shape};
}

__device__ std::size_t offset_of(const PoolPlace& at, int height, int width, int row, int column, int batch) {
  const std::size_t rows = static_cast<std::size_t>(at.channel) * height + row;
  return (rows * width + column) * batch + at.sample;
}

__global__ void adaptive_forward(AdaptivePlan plan, const float* x, float* y) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.threads) return;
  const AdaptivePoolShape& s = plan.shape;
  const PoolPlace at = pool_place<1>(thread, plan.columns, plan.height, plan.width);
  const AdaptiveWindow rows(at.row, s.in_height, s.out_height), columns(at.column, s.in_width, s.out_width);
  float sum = 0;
  for (int h = rows.begin; h < rows.end; ++h) {
    for (int w = columns.begin; w < columns.end; ++w)
      sum += x[offset_of(at, s.in_height, s.in_width, h, w, s.batch)];
  }
  y[thread] = sum * (1.0F / static_cast<float>(rows.size() * columns.size()));
}

/// The first output over a pixel, and the last one.
struct OutputsOver {
  int first, last;

  __device__ OutputsOver(int pixel, int in, int out)
      : first(static_cast<int>(std::int64_t{pixel} * out / in)),
        last(static_cast<int>(((std::int64_t{pixel} + 1) * out - 1) / in)) {}
};

__global__ void adaptive_backward(AdaptivePlan plan, const float* dy, float* dx) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.threads) return;
  const AdaptivePoolShape& s = plan.shape;
  const PoolPlace at = pool_place<1>(thread, plan.columns, plan.height, plan.width);
  const OutputsOver over_row(at.row, s.in_height, s.out_height),
      over_column(at.column, s.in_width, s.out_width);
  float sum = 0;
  for (int i = over_row.first; i <= over_row.last; ++i) {
    const AdaptiveWindow rows(i, s.in_height, s.out_height);
    for (int j = over_column.first; j <= over_column.last; ++j) {
      const AdaptiveWindow columns(j, s.in_width, s.out_width);
      sum += dy[offset_of(at, s.out_height, s.out_width, i, j, s.batch)] *
             (1.0F / static_cast<float>(rows.size() * columns.size()));
    }
  }
  dx[thread] = sum;
}

}  // namespace

void NativeOps::adaptive_avg_pool_forward(Stream& stream, const AdaptivePoolShape& of, const float* x,
                                          float* y) {
  const AdaptivePoolShape shape = as_channels(of);
  const AdaptivePlan plan = plan_of(shape, shape.out_size(), shape.out_height, shape.out_width);
  launch(on(stream), thread_each(plan.threads), adaptive_forward, plan, x, y);
}

void NativeOps::adaptive_avg_pool_backward(Stream& stream, const AdaptivePoolShape& of, const float* dy,
                                           float* dx) {
  const AdaptivePoolShape shape = as_channels(of);
  const AdaptivePlan plan = plan_of(shape, shape.in_size(), shape.in_height, shape.in_width);
  launch(on(stream), thread_each(plan.threads), adaptive_backward, plan, dy, dx);
}

// The mean of each whole channel, a thread for each channel of a sample, in the CPU's order of additions.
// Its gradient, a thread for each pixel.
//
// Limit, forward and back together, 2 launches, x is read, dx written. 64 channels of 8 x 8, batch 128: 4.2
// MB, in L2: 0.8 us.

namespace {

/// Pixels of a channel are `columns` numbers from each other.
__global__ void mean_forward(std::uint32_t outputs, Divisor columns, int pixels, float share, const float* x,
                             float* y) {
  const std::uint32_t thread = thread_number();
  if (thread >= outputs) return;
  const Division channel = divide(thread, columns);
  const std::size_t stride = columns.value;
  const float* first = x + channel.quotient * stride * pixels + channel.remainder;
  float sums[4] = {0, 0, 0, 0};
  int pixel = 0;
  for (; pixel + 4 <= pixels; pixel += 4, first += 4 * stride) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += first[k * stride];
  }
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    if (pixel + k < pixels) sums[k] += first[k * stride];
  }
  y[thread] = (sums[0] + sums[1] + (sums[2] + sums[3])) * share;
}

/// @param channel_size  pixels * columns
__global__ void mean_backward(std::uint32_t inputs, Divisor columns, Divisor channel_size, float share,
                              const float* dy, float* dx) {
  const std::uint32_t thread = thread_number();
  if (thread >= inputs) return;
  const Division channel = divide(thread, channel_size);
  const std::uint32_t column = divide(channel.remainder, columns).remainder;
  dx[thread] = dy[std::size_t{channel.quotient} * columns.value + column] * share;
}

}  // namespace

void NativeOps::global_avg_pool_forward(Stream& stream, const ImageShape& shape, int batch, const float* x,
                                        float* y) {
  const int pixels = shape.height * shape.width, columns = batch_innermost() ? batch : 1;
  const std::uint32_t outputs = thread_count(std::size_t{1} * shape.channels * batch);
  launch(on(stream), thread_each(outputs), mean_forward, outputs, Divisor(columns), pixels,
         1.0F / static_cast<float>(pixels), x, y);
}

void NativeOps::global_avg_pool_backward(Stream& stream, const ImageShape& shape, int batch, const float* dy,
                                         float* dx) {
  const int pixels = shape.height * shape.width, columns = batch_innermost() ? batch : 1;
  const std::uint32_t inputs = thread_count(std::size_t{1} * shape.features() * batch);
  launch(on(stream), thread_each(inputs), mean_backward, inputs, Divisor(columns), Divisor(pixels * columns),
         1.0F / static_cast<float>(pixels), dy, dx);
}

}  // namespace lockstep::LOCKSTEP_GPU
