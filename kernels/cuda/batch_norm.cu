// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batch normalisation. Sums of parts in the CPU's order (kernels/batch_norm.hpp): a block for each part. Statistics
/// of a channel: a thread for each. y and dx: a thread for each four neighbouring numbers of a channel.
///
/// Limit, forward and back together, 7 launches. x is read four times, dy twice, y and dx are written: 64
/// channels of 8 x 8, batch 128: 2.1 MB each, 17 MB, in L2: 3.4 us.
#include "kernels/batch_norm.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/sums.cuh"
#include "kernels/cuda/threads.cuh"
#include "kernels/sum_cuts.hpp"

#include <algorithm>

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr unsigned kPartThreads = kBatchNormLanes * kBatchNormChains;

/// The numbers of a channel that belong to each part.
struct Parts {
  int grain, samples, pixels, channels;
  int of_channel;  ///< parts of one channel of a whole grain
  TensorLayout layout;
};

__device__ void add_to_shared_sum(std::int64_t* words, double value) {
  const LongSumTerm term = long_sum_term(value);
  if (term.limb == kLongSumLimbs) {
    add_integer(words + kLongSumLimbs, 1);
    return;
  }
  for (int i = 0; i < 3; ++i) {
    if (term.parts[i] != 0) add_integer(words + term.limb + i, term.parts[i]);
  }
}

/// x and x x.
struct SquareTerms {
  const float* x;

  __device__ void start(int) {}
  __device__ void add(std::size_t at, double* sums) const {
    const double number = x[at];
    sums[0] += number;
    sums[1] += number * number;
  }
};

/// dy and dy xhat.
struct NormGradientTerms {
  const float *x, *dy;
  const BatchNormChannel* channels;
  float mean, rstd;

  __device__ void start(int channel) {
    mean = channels[channel].mean;
    rstd = channels[channel].rstd;
  }
  __device__ void add(std::size_t at, double* sums) const {
    const double gradient = dy[at], xhat = (x[at] - mean) * rstd;
    sums[0] += gradient;
    sums[1] += gradient * xhat;
  }
};

/// The thread's share of a part: lane by lane, chain by chain.
template <class Terms>
__device__ void add_share(const Parts& parts, int first_column, int columns, int channel, int part,
                          const Terms& terms, double* sums) {
  const int of_pixel = pieces(columns, kBatchNormLanes);
  const int lane = static_cast<int>(threadIdx.x) % kBatchNormLanes;
  const int end = min((part + 1) * kBatchNormRun, of_pixel * parts.pixels);
  int group = part * kBatchNormRun + static_cast<int>(threadIdx.x) / kBatchNormLanes;
  int pixel = group / of_pixel, in_pixel = group % of_pixel;
  for (; group < end; group += kBatchNormChains, in_pixel += kBatchNormChains) {
    for (; in_pixel >= of_pixel; in_pixel -= of_pixel) ++pixel;
    const int column = in_pixel * kBatchNormLanes + lane;
    if (column >= columns) continue;
    const std::size_t feature = static_cast<std::size_t>(channel) * parts.pixels + pixel;
    terms.add(feature * parts.layout.feature_stride +
                  static_cast<std::size_t>(first_column + column) * parts.layout.sample_stride,
              sums);
  }
}

template <class Terms>
__global__ void add_sums(Parts parts, Terms terms, std::int64_t* words) {
  LOCKSTEP_SHARED(double, shares, kBatchNormSums* kPartThreads);
  const int part = static_cast<int>(blockIdx.x) % parts.of_channel;
  const int rest = static_cast<int>(blockIdx.x) / parts.of_channel;
  const int channel = rest % parts.channels, first_column = rest / parts.channels * parts.grain;
  const int columns = min(parts.grain, parts.samples - first_column);
  double sums[kBatchNormSums] = {0, 0};
  terms.start(channel);
  add_share(parts, first_column, columns, channel, part, terms, sums);
  const unsigned thread = threadIdx.x;
  for (int s = 0; s < kBatchNormSums; ++s) shares[s * kPartThreads + thread] = sums[s];
  __syncthreads();
  if (thread < kBatchNormLanes) {
    for (int s = 0; s < kBatchNormSums; ++s) {
      double* chains = shares + s * kPartThreads + thread;
      chains[0] =
          (chains[0] + chains[kBatchNormLanes]) + (chains[2 * kBatchNormLanes] + chains[3 * kBatchNormLanes]);
    }
  }
  static_assert(kBatchNormSums == 2);
  add_halves(kBatchNormLanes / 2, 1, shares, shares + kPartThreads);
  __syncthreads();
  if (thread < kBatchNormSums)
    add_to_shared_sum(words + channel * kBatchNormWords + static_cast<int>(thread) * kLongSumWords,
                      shares[thread * kPartThreads]);
}

template <class Terms>
void queue_sums(cudaStream_t stream, const BatchNormShape& shape, TensorLayout layout, int grain,
                const Terms& terms, std::int64_t* words) {
  const int of_grain = pieces(std::min(grain, shape.samples), kBatchNormLanes) * shape.pixels,
            of_channel = pieces(of_grain, kBatchNormRun);
  const Parts parts = {grain, shape.samples, shape.pixels, shape.channels, of_channel, layout};
  const std::uint32_t blocks =
      thread_count(std::size_t{1} * pieces(shape.samples, grain) * shape.channels * of_channel);
  launch(stream, {dim3(blocks), dim3(kPartThreads)}, add_sums<Terms>, parts, terms, words);
}

__global__ void find_statistics(std::uint32_t count, std::int64_t numbers, double eps,
                                const std::int64_t* words, BatchNormChannel* channels) {
  const std::uint32_t c = thread_number();
  if (c < count) set_batch_statistics(words + c * kBatchNormWords, numbers, eps, channels[c]);
}

__global__ void find_gradients(std::uint32_t count, std::int64_t numbers, const std::int64_t* words,
                               BatchNormChannel* channels) {
  const std::uint32_t c = thread_number();
  if (c < count) set_batch_gradients(words + c * kBatchNormWords, numbers, channels[c]);
}

__global__ void take_running(std::uint32_t count, double eps, const float* running,
                             BatchNormChannel* channels) {
  const std::uint32_t c = thread_number();
  if (c < count) set_running_statistics(running[c], running[count + c], eps, channels[c]);
}

/// Behind the update, which has marked the state halted if it moved nothing.
__global__ void move_running(std::uint32_t count, float momentum, const BatchNormChannel* channels,
                             const StepState* state, float* running) {
  const std::uint32_t c = thread_number();
  if (c < count && state->halted == 0)
    move_running_statistics(channels[c], momentum, running[c], running[count + c]);
}

__global__ void add_weight_gradients(std::uint32_t count, const BatchNormChannel* channels,
                                     ExactGradient gradient) {
  const std::uint32_t c = thread_number();
  if (c >= count) return;
  add_exact(gradient.weight, c, channels[c].dweight);
  add_exact(gradient.bias, c, channels[c].dbias);
}

/// The channel of a pack of neighbours.
struct ChannelOf {
  Divisor inner, channels;

  ChannelOf(std::size_t packs, int all_channels) : inner(static_cast<int>(packs)), channels(all_channels) {}

  __device__ std::uint32_t operator()(std::uint32_t pack) const {
    return divide(divide(pack, inner).quotient, channels).remainder;
  }
};

/// Numbers of a channel that lie side by side.
std::size_t neighbours(const BatchNormShape& shape, bool batch_innermost) {
  return std::size_t{1} * shape.pixels * (batch_innermost ? shape.batch : 1);
}

/// In packs of so many numbers.
std::uint32_t packs_of(const BatchNormShape& shape, int width) {
  return thread_count(std::size_t{1} * shape.channels * shape.pixels * shape.batch / width);
}

template <int kWidth>
__global__ void norm_forward(std::uint32_t packs, ChannelOf channel_of, const float* x,
                             const BatchNormChannel* channels, const float* weight, const float* bias,
                             float* y) {
  const std::uint32_t thread = thread_number();
  if (thread >= packs) return;
  const std::size_t at = std::size_t{thread} * kWidth;
  Pack<float, kWidth> numbers = load_pack<kWidth>(x + at);
  const std::uint32_t c = channel_of(thread);
  const float rstd = channels[c].rstd, scale = weight == nullptr ? rstd : rstd * weight[c],
              mean = channels[c].mean, shift = bias == nullptr ? 0 : bias[c];
#pragma unroll
  for (int k = 0; k < kWidth; ++k) numbers.at[k] = fmaf(numbers.at[k] - mean, scale, shift);
  store_pack(y + at, numbers);
}

template <int kWidth>
__global__ void norm_backward(std::uint32_t packs, ChannelOf channel_of, const float* x, const float* dy,
                              const BatchNormChannel* channels, const float* weight, float* dx) {
  const std::uint32_t thread = thread_number();
  if (thread >= packs) return;
  const std::size_t at = std::size_t{thread} * kWidth;
  const Pack<float, kWidth> numbers = load_pack<kWidth>(x + at);
  Pack<float, kWidth> gradients = load_pack<kWidth>(dy + at);
  const std::uint32_t c = channel_of(thread);
  const BatchNormChannel channel = channels[c];
  const float scale = weight == nullptr ? channel.rstd : channel.rstd * weight[c];
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    const float xhat = (numbers.at[k] - channel.mean) * channel.rstd;
    gradients.at[k] = fmaf(-xhat, channel.mean_dy_xhat, gradients.at[k] - channel.mean_dy) * scale;
  }
  store_pack(dx + at, gradients);
}

}  // namespace

void NativeOps::batch_norm_sums(Stream& stream, const BatchNormShape& shape, int grain, const float* x,
                                std::int64_t* words) {
  queue_sums(on(stream), shape, layout(shape.batch, shape.channels * shape.pixels), grain, SquareTerms{x},
             words);
}

void NativeOps::batch_norm_gradient_sums(Stream& stream, const BatchNormShape& shape, int grain,
                                         const float* x, const float* dy, const BatchNormChannel* channels,
                                         std::int64_t* words) {
  queue_sums(on(stream), shape, layout(shape.batch, shape.channels * shape.pixels), grain,
             NormGradientTerms{x, dy, channels, 0, 0}, words);
}

void NativeOps::batch_norm_statistics(Stream& stream, int channels, std::int64_t numbers, double eps,
                                      const std::int64_t* words, BatchNormChannel* to) {
  launch(on(stream), thread_each(channels), find_statistics, channels, numbers, eps, words, to);
}

void NativeOps::batch_norm_gradients(Stream& stream, int channels, std::int64_t numbers,
                                     const std::int64_t* words, BatchNormChannel* to) {
  launch(on(stream), thread_each(channels), find_gradients, channels, numbers, words, to);
}

void NativeOps::batch_norm_running(Stream& stream, int channels, double eps, const float* running,
                                   BatchNormChannel* to) {
  launch(on(stream), thread_each(channels), take_running, channels, eps, running, to);
}

void NativeOps::batch_norm_move(Stream& stream, int channels, float momentum, const BatchNormChannel* from,
                                const StepState* state, float* running) {
  launch(on(stream), thread_each(channels), move_running, channels, momentum, from, state, running);
}

void NativeOps::batch_norm_weight_gradients(Stream& stream, int channels, const BatchNormChannel* from,
                                            const ExactGradient& gradient) {
  launch(on(stream), thread_each(channels), add_weight_gradients, channels, from, gradient);
}

void NativeOps::batch_norm_forward(Stream& stream, const BatchNormShape& shape, const float* x,
                                   const BatchNormChannel* channels, const float* weight, const float* bias,
                                   float* y) {
  const std::size_t row = neighbours(shape, batch_innermost());
  const auto run = [&]<int kWidth>() {
    const std::uint32_t packs = packs_of(shape, kWidth);
    launch(on(stream), thread_each(packs), norm_forward<kWidth>, packs,
           ChannelOf(row / kWidth, shape.channels), x, channels, weight, bias, y);
  };
  run_in_packs<4>(run, row, x, y);
}

void NativeOps::batch_norm_backward(Stream& stream, const BatchNormShape& shape, const float* x,
                                    const float* dy, const BatchNormChannel* channels, const float* weight,
                                    float* dx) {
  const std::size_t row = neighbours(shape, batch_innermost());
  const auto run = [&]<int kWidth>() {
    const std::uint32_t packs = packs_of(shape, kWidth);
    launch(on(stream), thread_each(packs), norm_backward<kWidth>, packs,
           ChannelOf(row / kWidth, shape.channels), x, dy, channels, weight, dx);
  };
  run_in_packs<4>(run, row, x, dy, dx);
}

}  // namespace lockstep::LOCKSTEP_GPU
