// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exact sums on their own: floats into them, and out of them. Kernels that compute gradients add to them
/// directly (exact_sum.cuh).
///
/// Versions: (1) a thread for each element with an atomic addition, as in the gradient kernels. (2) Without:
/// each element is one thread's. (3) Two elements a thread, 16 bytes of sums a load, which halves the
/// instructions that find addresses.
///
/// Limit: Net's 21,840 gradients: 0.44 MB, LeNet's 129,068: 2.6 MB, from L2 0.1 and 0.5 us; conversions, 16 a
/// clock and SM, 0.01 and 0.04 us. What counts is the launch.
#include "kernels/cuda/exact_sum.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/thread_each.cuh"

namespace lockstep::LOCKSTEP_GPU {
namespace {

template <int kWidth>
__device__ void accumulate_pack(const float* g, float limit, std::int64_t* sum, std::int64_t* refused) {
  const Pack<float, kWidth> terms = load_pack<kWidth>(g);
  Pack<std::int64_t, kWidth> sums = load_pack<kWidth>(sum);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    if (fabsf(terms.at[i]) < limit) {
      sums.at[i] += fixed_point(terms.at[i]);
    } else {
      add_integer(refused, 1);
    }
  }
  store_pack(sum, sums);
}

template <int kWidth>
__global__ void accumulate(std::size_t size, const float* g, float limit, std::int64_t* sum,
                           std::int64_t* refused) {
  const std::size_t first = std::size_t{thread_number()} * kWidth;
  if (first + kWidth <= size) {
    accumulate_pack<kWidth>(g + first, limit, sum + first, refused);
  } else {
#pragma unroll 1
    for (std::size_t i = first; i < size; ++i) accumulate_pack<1>(g + i, limit, sum + i, refused);
  }
}

template <int kWidth>
__device__ void convert_pack(const std::int64_t* sum, float* g) {
  const Pack<std::int64_t, kWidth> sums = load_pack<kWidth>(sum);
  Pack<float, kWidth> values;
#pragma unroll
  for (int i = 0; i < kWidth; ++i)
    values.at[i] = static_cast<float>(static_cast<double>(sums.at[i]) * (1 / kExactScale));
  store_pack(g, values);
}

template <int kWidth>
__global__ void convert(std::size_t size, const std::int64_t* sum, float* g) {
  const std::size_t first = std::size_t{thread_number()} * kWidth;
  if (first + kWidth <= size) {
    convert_pack<kWidth>(sum + first, g + first);
  } else {
#pragma unroll 1
    for (std::size_t i = first; i < size; ++i) convert_pack<1>(sum + i, g + i);
  }
}

/// A thread for each `width` elements of `size`.
LaunchShape threads_for(std::size_t size, std::size_t width) {
  return thread_each(thread_count((size + width - 1) / width));
}

}  // namespace

void accumulate_exact(cudaStream_t stream, std::size_t size, const float* g, float limit, std::int64_t* sum,
                      std::int64_t* refused) {
  if (size == 0) return;
  if (is_packable<2>(g) && is_packable<2>(sum)) {
    launch(stream, threads_for(size, 2), accumulate<2>, size, g, limit, sum, refused);
  } else {
    launch(stream, threads_for(size, 1), accumulate<1>, size, g, limit, sum, refused);
  }
}

void exact_to_fp32(cudaStream_t stream, std::size_t size, const std::int64_t* sum, float* g) {
  if (size == 0) return;
  if (is_packable<2>(g) && is_packable<2>(sum)) {
    launch(stream, threads_for(size, 2), convert<2>, size, sum, g);
  } else {
    launch(stream, threads_for(size, 1), convert<1>, size, sum, g);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
