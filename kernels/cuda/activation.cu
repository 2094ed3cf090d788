// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is computed number by number: activations, sums, a bias for each channel.
#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/threads.cuh"

namespace lockstep::LOCKSTEP_GPU {

// Activations with a curve, and sums of two tensors: a thread for each four numbers.
//
// Limit, forward and back together, 2 launches: x is read, y written, what was saved and dy read, dx
// written. 64 channels of 16 x 16, batch 128: 42 MB, 0.7 us a launch lost, 8.4 us from L2, 12.5 us from HBM;
// the arithmetic, some 30 operations and a division, hides behind it.

namespace {

template <Activation kKind>
struct Forward {
  float number;

  __device__ float operator()(float x, float /*unused*/) const {
    return ActivationMath<kKind>::template forward<ScalarMath>(x, number);
  }
};

template <Activation kKind>
struct Backward {
  float number;

  __device__ float operator()(float saved, float dy) const {
    return ActivationMath<kKind>::template backward<ScalarMath>(saved, dy, number);
  }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// y = f(a, b), number by number; y may be a or b.
/// @param size  in packs
template <typename Function, int kWidth>
__global__ void each(std::uint32_t size, Function f, const float* a, const float* b, float* y) {
  await_earlier_kernels();
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
  if (is_packable<4>(a, size) && is_packable<4>(b, size) && is_packable<4>(y, size)) {
    const std::uint32_t packs = thread_count(size / 4);
    launch(stream, thread_each(packs), each<Function, 4>, packs, f, a, b, y);
  } else {
    const std::uint32_t numbers = thread_count(size);
    launch(stream, thread_each(numbers), each<Function, 1>, numbers, f, a, b, y);
  }
}

}  // namespace

void activation_forward(cudaStream_t stream, const ActivationFunction& f, std::size_t size, const float* x,
                        float* y) {
  with_constant(f.kind,
                [&]<Activation kKind>() { for_each(stream, Forward<kKind>{f.number}, size, x, x, y); });
}

void activation_backward(cudaStream_t stream, const ActivationFunction& f, std::size_t size,
                         const float* saved, const float* dy, float* dx) {
  with_constant(
      f.kind, [&]<Activation kKind>() { for_each(stream, Backward<kKind>{f.number}, size, saved, dy, dx); });
}

void add(cudaStream_t stream, std::size_t size, const float* a, const float* b, float* y) {
  for_each(stream, Sum{}, size, a, b, y);
}

// The bias of a layer whose samples are outermost, for the vendor ops: cuDNN adds only biases that begin at
// a multiple of 16 bytes, and those in the arena begin where the weights before them end.
//
// Limit: y is read and written once, as by cuDNN: Net conv1, batch 64: 2.9 MB, 0.9 us.

namespace {

/// @param size      of y, in packs
/// @param pixels    of an output channel of a sample, in packs
template <int kWidth>
__global__ void add_bias(std::uint32_t size, Divisor pixels, Divisor channels, const float* b, float* y) {
  await_earlier_kernels();
  const std::uint32_t i = thread_number();
  if (i >= size) return;
  const float of_channel = load_input(b + divide(divide(i, pixels).quotient, channels).remainder);
  float* const at = y + std::size_t{i} * kWidth;
  Pack<float, kWidth> values = load_pack<kWidth>(at);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) values.at[k] += of_channel;
  store_pack(at, values);
}

template <int kWidth>
void launch_add_bias(cudaStream_t stream, const ImageShape& output, int batch, const float* b, float* y) {
  const int pixels = output.height * output.width;
  const auto size =
      thread_count(static_cast<std::size_t>(batch) * static_cast<std::size_t>(output.features()) / kWidth);
  launch(stream, thread_each(size), add_bias<kWidth>, size, Divisor(pixels / kWidth),
         Divisor(output.channels), b, y);
}

}  // namespace

void add_channel_bias(cudaStream_t stream, const ImageShape& output, int batch, const float* b, float* y) {
  if (batch == 0) return;
  if (is_packable<4>(y, std::size_t{1} * output.height * output.width)) {
    launch_add_bias<4>(stream, output, batch, b, y);
  } else {
    launch_add_bias<1>(stream, output, batch, b, y);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
