// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Max-pooling alone, of any window. The 2 x 2 pool after a convolution is part of its kernel instead.
///
/// Versions: (1) a thread for each output of a sample, backward by atomic additions to its window. These are in the
/// hardware's order, and have three divisions by sizes of the launch, some 20 instructions each. (2)
/// Divisions are multiplications (threads.cuh); backward is a gather, a thread for each input, which adds up
/// the windows that cover it in the CPU's order. (3) A thread has four samples, 16 bytes a load; windows of 2
/// x 2 and 3 x 3 without padding are unrolled, so that all their loads are under way at once.
///
/// Limit, forward and back together, 2 launches; x is read, dx written, y, dy and argmax once each way.
/// Net's first pool, batch 64 (10 @ 24 x 24): 3.9 MB, in L2: 0.8 us. LeNet's, batch 256 (20 @ 26 x 26):
/// 36 MB: 7 us from L2, 11 us from HBM. Comparisons: nothing beside that.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/pool.cuh"
#include "kernels/cuda/threads.cuh"

#include <cmath>

namespace lockstep::LOCKSTEP_GPU {
namespace {

/// Running maxima. The first of equals wins, as in PyTorch, and NaN beats every number.
template <int kWidth>
struct Best {
  Pack<float, kWidth> value;
  Pack<std::uint8_t, kWidth> tap;
};

template <int kWidth>
__device__ void challenge(Best<kWidth>& best, const Pack<float, kWidth>& x, int tap) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const bool wins = x.at[i] > best.value.at[i] || x.at[i] != x.at[i];
    best.value.at[i] = wins ? x.at[i] : best.value.at[i];
    best.tap.at[i] = wins ? static_cast<std::uint8_t>(tap) : best.tap.at[i];
  }
}

/// Minus infinity at the first tap inside the image.
template <int kWidth>
__device__ Best<kWidth> first_tap(const PoolPlan& plan, const PoolPlace& place) {
  const int stride = static_cast<int>(plan.stride.value);
  const int top = place.row * stride - plan.padding, left = place.column * stride - plan.padding;
  const int tap = (top < 0 ? -top * plan.kernel : 0) + (left < 0 ? -left : 0);
  Best<kWidth> best;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    best.value.at[i] = -INFINITY;
    best.tap.at[i] = static_cast<std::uint8_t>(tap);
  }
  return best;
}

template <int kWidth, int kKernel>
__global__ void forward(PoolPlan plan, const float* x, float* y, std::uint8_t* argmax) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.outputs) return;
  const PoolPlace place = pool_place<kWidth>(thread, plan.columns, plan.out_height, plan.out_width);
  Best<kWidth> best = first_tap<kWidth>(plan, place);
  for_each_tap<kKernel>(
      plan, place, [&](int tap, std::size_t offset) { challenge(best, load_pack<kWidth>(x + offset), tap); });
  const std::size_t offset = std::size_t{thread} * kWidth;
  store_pack(y + offset, best.value);
  store_pack(argmax + offset, best.tap);
}

template <int kWidth>
__global__ void backward(PoolPlan plan, const float* dy, const std::uint8_t* argmax, float* dx) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.inputs) return;
  const PoolPlace place = pool_place<kWidth>(thread, plan.columns, plan.in_height, plan.in_width);
  Pack<float, kWidth> sum = {};
  for_each_window_over(plan, place, [&](int tap, std::size_t offset) {
    const Pack<float, kWidth> gradient = load_pack<kWidth>(dy + offset);
    const Pack<std::uint8_t, kWidth> best = load_pack<kWidth>(argmax + offset);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum.at[i] += best.at[i] == tap ? gradient.at[i] : 0.0F;
  });
  store_pack(dx + std::size_t{thread} * kWidth, sum);
}

}  // namespace

void NativeOps::max_pool_forward(Stream& stream, const Pool2dShape& of, const float* x, float* y,
                                 std::uint8_t* argmax) {
  const Pool2dShape shape = as_channels(of);
  const auto run = [&]<int kWidth>() {
    const PoolPlan plan = plan_of(shape, kWidth);
    with_kernel_size(shape, [&]<int kKernel>() {
      launch(on(stream), thread_each(plan.outputs), forward<kWidth, kKernel>, plan, x, y, argmax);
    });
  };
  run_in_packs<4>(run, static_cast<std::size_t>(shape.batch), x, y, argmax);
}

void NativeOps::max_pool_backward(Stream& stream, const Pool2dShape& of, const float* dy,
                                  const std::uint8_t* argmax, float* dx) {
  const Pool2dShape shape = as_channels(of);
  const auto run = [&]<int kWidth>() {
    const PoolPlan plan = plan_of(shape, kWidth);
    launch(on(stream), thread_each(plan.inputs), backward<kWidth>, plan, dy, argmax, dx);
  };
  run_in_packs<4>(run, static_cast<std::size_t>(shape.batch), dy, dx, argmax);
}

}  // namespace lockstep::LOCKSTEP_GPU
