// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The epilogue alone, after an op that could not do it itself; in both layouts.
///
/// Versions: (1) one kernel for each relu, dropout and pool: every number is read and written once a layer.
/// (2) One kernel for all of them, a thread for each window of a sample. (3) With dropout a thread has four
/// neighbouring windows, which share one draw of Philox: its ten rounds cost more than all the rest.
///
/// Limit, one launch each way. Net's conv2, batch 64 (dropout2d, max-pool, relu on 20 @ 8 x 8): 0.33 MB in,
/// 0.1 MB out: 0.1 us from L2. LeNet's conv1, batch 256 (relu, avg-pool on 20 @ 26 x 26): 13.8 MB in, 4.3 MB
/// out: 3.6 us from L2, 5.5 us from HBM; the same back.
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/sum_cuts.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kWindowsWithDropout = 4;

/// The windows of a batch in the order that threads walk over them, and the strides of tensors.
struct WindowPlan {
  bool batch_innermost;
  Divisor inner;  ///< batch innermost: samples; otherwise groups of windows
  Divisor pooled_height, pooled_width;
  int height, width;  ///< before the pool
  int windows;        ///< windows of a sample
  int group;          ///< windows of a thread
  std::uint32_t threads;
  std::size_t pixel_stride;                         ///< stride of all tensors
  std::size_t sample_stride, pooled_sample_stride;  ///< before and after the pool
};

WindowPlan plan_of(const ImageShape& shape, int pool, int batch, bool batch_innermost, int group) {
  const int pooled_height = shape.height / pool, pooled_width = shape.width / pool;
  const int windows = shape.channels * pooled_height * pooled_width, groups = pieces(windows, group);
  return {.batch_innermost = batch_innermost,
          .inner = Divisor(batch_innermost ? batch : groups),
          .pooled_height = Divisor(pooled_height),
          .pooled_width = Divisor(pooled_width),
          .height = shape.height,
          .width = shape.width,
          .windows = windows,
          .group = group,
          .threads = thread_count(std::size_t{1} * groups * batch),
          .pixel_stride = static_cast<std::size_t>(batch_innermost ? batch : 1),
          .sample_stride = static_cast<std::size_t>(batch_innermost ? 1 : shape.features()),
          .pooled_sample_stride = static_cast<std::size_t>(batch_innermost ? 1 : windows)};
}

/// The windows of a thread: a few in a row, of one sample.
struct WindowGroup {
  int first, end;
  int sample;
};

__device__ WindowGroup windows_of(std::uint32_t thread, const WindowPlan& plan) {
  const Division split = divide(thread, plan.inner);
  const std::uint32_t group = plan.batch_innermost ? split.quotient : split.remainder;
  const std::uint32_t sample = plan.batch_innermost ? split.remainder : split.quotient;
  const int first = static_cast<int>(group) * plan.group;
  const int end = first + plan.group;
  return {first, end < plan.windows ? end : plan.windows, static_cast<int>(sample)};
}

__device__ WindowPlace place_of(int window, int sample, const WindowPlan& plan) {
  const Division row = divide(static_cast<std::uint32_t>(window), plan.pooled_width);
  const Division channel = divide(row.quotient, plan.pooled_height);
  return {plan.height,
          plan.width,
          static_cast<int>(channel.quotient),
          static_cast<int>(channel.remainder),
          static_cast<int>(row.remainder),
          sample};
}

/// Start of the window in a tensor from before the pool.
template <int kPool>
__device__ std::size_t corner_of(const WindowPlace& place, const WindowPlan& plan) {
  const int row = place.channel * plan.height + place.row * kPool;
  const int pixel = row * plan.width + place.column * kPool;
  return static_cast<std::size_t>(pixel) * plan.pixel_stride + place.sample * plan.sample_stride;
}

/// Place of its result in a tensor from after the pool.
__device__ std::size_t result_of(int window, int sample, const WindowPlan& plan) {
  return static_cast<std::size_t>(window) * plan.pixel_stride + sample * plan.pooled_sample_stride;
}

template <int kPool>
__global__ void forward(WindowPlan plan, Epilogue epilogue, const StepState* state, const float* x, float* y,
                        std::uint8_t* mask) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.threads) return;
  const std::uint32_t step = state == nullptr ? 0 : state->step;
  const std::size_t row_stride = static_cast<std::size_t>(plan.width) * plan.pixel_stride;
  const WindowGroup group = windows_of(thread, plan);
  LastDraw last;
  for (int window = group.first; window < group.end; ++window) {
    const WindowPlace place = place_of(window, group.sample, plan);
    const float* corner = x + corner_of<kPool>(place, plan);
    float v[kPool * kPool];
#pragma unroll
    for (int k = 0; k < kPool * kPool; ++k)
      v[k] = corner[k / kPool * row_stride + k % kPool * plan.pixel_stride];
    const EpilogueResult result = run_epilogue<kPool>(epilogue, step, place, v, last);
    const std::size_t to = result_of(window, group.sample, plan);
    y[to] = result.y;
    if (mask != nullptr) mask[to] = result.mask;
  }
}

template <int kPool>
__global__ void backward(WindowPlan plan, EpilogueBackward expand, const float* dy, float* dx) {
  const std::uint32_t thread = thread_number();
  if (thread >= plan.threads) return;
  const WindowGroup group = windows_of(thread, plan);  // place of one window
  const WindowPlace place = place_of(group.first, group.sample, plan);
  const std::size_t from = result_of(group.first, group.sample, plan);
  store_window<kPool>(expand, place, expand.mask[from], expand.factors.times(dy[from]), plan.pixel_stride,
                      dx + corner_of<kPool>(place, plan));
}

}  // namespace

void NativeOps::epilogue_forward(Stream& stream, const ImageShape& shape, int batch, const float* x,
                                 const Epilogue& epilogue, const StepState* state, float* y,
                                 std::uint8_t* mask) {
  LOCKSTEP_CHECK(state != nullptr || !has_dropout(epilogue));
  const int group = has_dropout(epilogue) ? kWindowsWithDropout : 1;
  const WindowPlan plan = plan_of(shape, epilogue.pool, batch, batch_innermost(), group);
  const auto kernel = epilogue.pool == 1 ? forward<1> : forward<2>;
  launch(on(stream), thread_each(plan.threads), kernel, plan, epilogue, state, x, y, mask);
}

void NativeOps::epilogue_backward(Stream& stream, const EpilogueBackward& expand, int batch, const float* dy,
                                  float* dx) {
  const ImageShape shape = {expand.channels, expand.height, expand.width};
  const WindowPlan plan = plan_of(shape, expand.pool, batch, batch_innermost(), 1);
  const auto kernel = expand.pool == 1 ? backward<1> : backward<2>;
  launch(on(stream), thread_each(plan.threads), kernel, plan, expand, dy, dx);
}

}  // namespace lockstep::LOCKSTEP_GPU
