// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ops that work number by number: activations, sums, a bias or a factor for each channel, copies of features.
#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/threads.cuh"

#include <numeric>

namespace lockstep::LOCKSTEP_GPU {

// Activations with a curve, and sums of two tensors: a thread for each four numbers.
//
// Limit, forward and back together, 2 launches: x is read, y written, what was saved and dy read, dx
// written. 64 channels of 16 x 16, batch 128: 42 MB, 0.7 us a launch lost, 8.4 us from L2, 12.5 us from HBM;
// the arithmetic, some 30 operations and a division, hides under it.

namespace {

template <Activation kKind>
struct Forward {
  float number;

  __device__ float operator()(float x, float /*unused*/) const {
    return curve_of(Curve<ScalarMath, kKind>{number}, x);
  }
};

template <Activation kKind>
struct Backward {
  float number;

  __device__ float operator()(float saved, float dy) const {
    return curve_back(Curve<ScalarMath, kKind>{number}, saved, dy);
  }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// y = f(a, b), number by number; y may be a or b.
/// @param size  in packs
template <typename Function, int kWidth>
__global__ void each(std::uint32_t size, Function f, const float* a, const float* b, float* y) {
  const std::uint32_t i = thread_number();
  if (i >= size) return;
  const std::size_t at = std::size_t{i} * kWidth;
  const Pack<float, kWidth> of_a = load_pack<kWidth>(a + at), of_b = load_pack<kWidth>(b + at);
  Pack<float, kWidth> result;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) result.at[k] = f(of_a.at[k], of_b.at[k]);
  store_pack(y + at, result);
}

template <typename Function>
void for_each(cudaStream_t stream, const Function& f, std::size_t size, const float* a, const float* b,
              float* y) {
  if (size == 0) return;
  const auto run = [&]<int kWidth>() {
    const std::uint32_t packs = thread_count(size / kWidth);
    launch(stream, thread_each(packs), each<Function, kWidth>, packs, f, a, b, y);
  };
  run_in_packs<4>(run, size, a, b, y);
}

}  // namespace

void NativeOps::activation_forward(Stream& stream, const ActivationFunction& f, std::size_t size,
                                   const float* x, float* y) {
  with_constant(f.kind,
                [&]<Activation kKind>() { for_each(on(stream), Forward<kKind>{f.number}, size, x, x, y); });
}

void NativeOps::activation_backward(Stream& stream, const ActivationFunction& f, std::size_t size,
                                    const float* saved, const float* dy, float* dx) {
  with_constant(f.kind, [&]<Activation kKind>() {
    for_each(on(stream), Backward<kKind>{f.number}, size, saved, dy, dx);
  });
}

void NativeOps::add(Stream& stream, std::size_t size, const float* a, const float* b, float* y) {
  for_each(on(stream), Sum{}, size, a, b, y);
}

// The bias of a layer whose samples are outermost, for the vendor ops. cuDNN adds only biases that begin at
// a multiple of 16 bytes, and those in the arena begin where the weights before them end.
//
// Limit: y is read and written once, as by cuDNN: Net conv1, batch 64: 2.9 MB, 0.9 us.

namespace {

/// @param size      packs of y
/// @param pixels    packs of an output channel of a sample
template <int kWidth>
__global__ void add_bias(std::uint32_t size, Divisor pixels, Divisor channels, const float* b, float* y) {
  const std::uint32_t i = thread_number();
  if (i >= size) return;
  const float of_channel = load_input(b + divide(divide(i, pixels).quotient, channels).remainder);
  float* const at = y + std::size_t{i} * kWidth;
  Pack<float, kWidth> values = load_pack<kWidth>(at);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) values.at[k] += of_channel;
  store_pack(at, values);
}

}  // namespace

void add_channel_bias(cudaStream_t stream, const ImageShape& output, int batch, const float* b, float* y) {
  const int pixels = output.height * output.width;
  const auto run = [&]<int kWidth>() {
    const auto size = thread_count(std::size_t{1} * batch * output.features() / kWidth);
    launch(stream, thread_each(size), add_bias<kWidth>, size, Divisor(pixels / kWidth),
           Divisor(output.channels), b, y);
  };
  run_in_packs<4>(run, static_cast<std::size_t>(pixels), y);
}

// A product with one number for each channel of each sample, and the gradient of that number. Also features that are
// copied from one tensor into another.
//
// Limit, y = x scale forward and both gradients back, 3 launches. x and dy are read twice, y and dx written. 64
// channels of 16 x 16, batch 128: 50 MB, 10 us from L2, 15 us from HBM.

namespace {

template <int kWidth>
__device__ inline void store_or_add(Pack<float, kWidth> numbers, bool adds, float* to) {
  if (adds) {
    const Pack<float, kWidth> before = load_pack<kWidth>(to);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) numbers.at[k] = before.at[k] + numbers.at[k];
  }
  store_pack(to, numbers);
}

/// A thread for each pack. Sizes are in packs.
/// @param channel_size  pixels * columns
template <int kWidth>
__global__ void scale_numbers(std::uint32_t size, Divisor columns, Divisor channel_size, const float* x,
                              const float* scale, bool adds, float* y) {
  const std::uint32_t thread = thread_number();
  if (thread >= size) return;
  const std::size_t at = std::size_t{thread} * kWidth;
  Pack<float, kWidth> numbers = load_pack<kWidth>(x + at);
  const Division channel = divide(thread, channel_size);
  const std::size_t column = divide(channel.remainder, columns).remainder;
  const Pack<float, kWidth> factors =
      load_pack<kWidth>(scale + (std::size_t{channel.quotient} * columns.value + column) * kWidth);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) numbers.at[k] *= factors.at[k];
  store_or_add(numbers, adds, y + at);
}

/// A thread for each channel of a sample, in the CPU's order. A channel's pixels are `columns` numbers from each other.
__global__ void sum_channels(std::uint32_t outputs, Divisor columns, int pixels, const float* a,
                             const float* b, bool adds, float* y) {
  const std::uint32_t thread = thread_number();
  if (thread >= outputs) return;
  const Division channel = divide(thread, columns);
  const std::size_t stride = columns.value;
  const std::size_t first = channel.quotient * stride * static_cast<std::size_t>(pixels) + channel.remainder;
  float sums[4] = {0, 0, 0, 0};
  for (int pixel = 0; pixel < pixels; pixel += 4) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (pixel + k >= pixels) break;
      const std::size_t at = first + static_cast<std::size_t>(pixel + k) * stride;
      sums[k] = fmaf(a[at], b[at], sums[k]);
    }
  }
  store_or_add(Pack<float, 1>{(sums[0] + sums[1]) + (sums[2] + sums[3])}, adds, y + thread);
}

/// Rows of `length` packs; strides are in packs, too.
template <int kWidth>
__global__ void copy_rows(std::uint32_t size, Divisor length, std::size_t from_stride, std::size_t to_stride,
                          const float* from, bool adds, float* to) {
  const std::uint32_t thread = thread_number();
  if (thread >= size) return;
  const Division row = divide(thread, length);
  store_or_add(load_pack<kWidth>(from + (row.quotient * from_stride + row.remainder) * kWidth), adds,
               to + (row.quotient * to_stride + row.remainder) * kWidth);
}

}  // namespace

void NativeOps::scale_channels(Stream& stream, const ScaleShape& of, const float* x, const float* scale,
                               bool adds, float* y) {
  const ScaleShape shape = as_channels(of);
  const auto run = [&]<int kWidth>() {
    const std::uint32_t size =
        thread_count(std::size_t{1} * shape.channels * shape.pixels * shape.batch / kWidth);
    const int columns = shape.batch / kWidth;
    launch(on(stream), thread_each(size), scale_numbers<kWidth>, size, Divisor(columns),
           Divisor(shape.pixels * columns), x, scale, adds, y);
  };
  run_in_packs<4>(run, static_cast<std::size_t>(shape.batch), x, scale, y);
}

void NativeOps::sum_products(Stream& stream, const ScaleShape& of, const float* a, const float* b, bool adds,
                             float* y) {
  const ScaleShape shape = as_channels(of);
  const std::uint32_t outputs = thread_count(std::size_t{1} * shape.channels * shape.batch);
  launch(on(stream), thread_each(outputs), sum_channels, outputs, Divisor(shape.batch), shape.pixels, a, b,
         adds, y);
}

/// With the batch innermost it is one row.
void NativeOps::copy_features(Stream& stream, const FeatureCopy& copy, const float* from, bool adds,
                              float* to) {
  const auto columns = static_cast<std::size_t>(batch_innermost() ? copy.batch : 1);
  const auto count = static_cast<std::size_t>(copy.count),
             size = count * static_cast<std::size_t>(copy.batch), length = count * columns;
  const auto from_stride = static_cast<std::size_t>(batch_innermost() ? 0 : copy.from_features),
             to_stride = static_cast<std::size_t>(batch_innermost() ? 0 : copy.to_features);
  from += static_cast<std::size_t>(copy.from_first) * columns;
  to += static_cast<std::size_t>(copy.to_first) * columns;
  const auto run = [&]<int kWidth>() {
    const std::uint32_t packs = thread_count(size / kWidth);
    launch(on(stream), thread_each(packs), copy_rows<kWidth>, packs,
           Divisor(static_cast<int>(length / kWidth)), from_stride / kWidth, to_stride / kWidth, from, adds,
           to);
  };
  run_in_packs<4>(run, std::gcd(length, std::gcd(from_stride, to_stride)), from, to);
}

}  // namespace lockstep::LOCKSTEP_GPU
