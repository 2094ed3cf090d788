// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of integers: of gradients, and fingerprints.
#include "common/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/sums.cuh"
#include "kernels/cuda/threads.cuh"

namespace lockstep::LOCKSTEP_GPU {

// Exact sums alone: floats into them, and out of them. Kernels that compute gradients add to them
// directly (sums.cuh).
//
// Versions: (1) a thread for each element with an atomic addition, as in the gradient kernels. (2) Without: an
// element belongs to one thread. (3) Two elements a thread, 16 bytes of sums a load, which halves the
// instructions that find addresses.
//
// Limit: Net's 21,840 gradients: 0.44 MB, LeNet's 129,068: 2.6 MB, from L2 0.1 and 0.5 us. Conversions, 16 a
// clock and SM: 0.01 and 0.04 us. Most of it is the launch.

namespace {

template <int kWidth>
__device__ void accumulate_pack(const float* g, const ExactTarget& to, std::size_t first) {
  const Pack<float, kWidth> terms = load_pack<kWidth>(g + first);
  Pack<std::int64_t, kWidth> sums = load_pack<kWidth>(to.sums + first);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    if (fits(terms.at[i], to.format)) {
      sums.at[i] += fixed_point(terms.at[i], to.format);
    } else {
      refuse(terms.at[i], to.refusals);
    }
  }
  store_pack(to.sums + first, sums);
}

template <int kWidth>
__global__ void accumulate(std::size_t size, const float* g, ExactTarget to) {
  const std::size_t first = std::size_t{thread_number()} * kWidth;
  if (first + kWidth <= size) {
    accumulate_pack<kWidth>(g, to, first);
  } else {
#pragma unroll 1
    for (std::size_t i = first; i < size; ++i) accumulate_pack<1>(g, to, i);
  }
}

/// Exponents of neighbouring sums; kExactExponent where there are none.
template <int kWidth>
__device__ Pack<std::int16_t, kWidth> load_exponents(const std::int16_t* exponents, std::size_t first) {
  if (exponents != nullptr) return load_pack<kWidth>(exponents + first);
  Pack<std::int16_t, kWidth> same;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) same.at[i] = kExactExponent;
  return same;
}

template <int kWidth>
__device__ void convert_pack(const std::int64_t* sum, const std::int16_t* exponents, float* g,
                             std::size_t first) {
  const Pack<std::int64_t, kWidth> sums = load_pack<kWidth>(sum + first);
  const Pack<std::int16_t, kWidth> units = load_exponents<kWidth>(exponents, first);
  Pack<float, kWidth> values;
#pragma unroll
  for (int i = 0; i < kWidth; ++i)
    values.at[i] = static_cast<float>(static_cast<double>(sums.at[i]) * double_power_of_two(units.at[i]));
  store_pack(g + first, values);
}

template <int kWidth>
__global__ void convert(std::size_t size, const std::int64_t* sum, const std::int16_t* exponents, float* g) {
  const std::size_t first = std::size_t{thread_number()} * kWidth;
  if (first + kWidth <= size) {
    convert_pack<kWidth>(sum, exponents, g, first);
  } else {
#pragma unroll 1
    for (std::size_t i = first; i < size; ++i) convert_pack<1>(sum, exponents, g, i);
  }
}

/// A thread for each `width` elements of `size`.
LaunchShape threads_for(std::size_t size, std::size_t width) {
  return thread_each(thread_count((size + width - 1) / width));
}

}  // namespace

void NativeOps::accumulate_exact(Stream& stream, std::size_t size, const float* g, const ExactTarget& to) {
  if (size == 0) return;
  const auto run = [&]<int kWidth>() {
    launch(on(stream), threads_for(size, kWidth), accumulate<kWidth>, size, g, to);
  };
  run_in_packs<2>(run, 2, g, to.sums);
}

void NativeOps::exact_to_fp32(Stream& stream, std::size_t size, const std::int64_t* sum,
                              const std::int16_t* exponents, float* g) {
  if (size == 0) return;
  const auto run = [&]<int kWidth>() {
    launch(on(stream), threads_for(size, kWidth), convert<kWidth>, size, sum, exponents, g);
  };
  run_in_packs<2>(run, 2, g, sum, exponents);
}

// Fingerprints of what no update reads (running means of batch_norm, averages of weights). And of sums before and after
// an all-reduce. A block for each part of it, a tree over its threads, an atomic addition. All else is fingerprinted by
// the update, which has it in registers (update.cu).

namespace {

constexpr unsigned kFingerprintThreads = 256;

/// Fingerprints the words that `word_at` names. @returns the fingerprint, in the first thread
template <class WordAt>
__device__ std::int64_t fingerprint_of_block(std::uint32_t buffer, std::size_t first, std::size_t size,
                                             const WordAt& word_at) {
  LOCKSTEP_SHARED(std::uint64_t, sums, kFingerprintThreads);
  std::uint64_t sum = 0;
  for (std::size_t i = threadIdx.x; i < size; i += kFingerprintThreads)
    sum += word_at(i) * word_multiplier(buffer, first + i);
  sums[threadIdx.x] = sum;
  for (unsigned half = kFingerprintThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return static_cast<std::int64_t>(sums[0]);
}

__global__ void fingerprint_parts(KeptFingerprintArgs args) {
  // A halted state stays at its last step, and what is added there is not read.
  const auto row = static_cast<std::size_t>(args.state->steps_done);
  const KeptPart part = args.parts[blockIdx.x];
  const std::int64_t fingerprint =
      fingerprint_of_block(part.buffer, part.first, part.size,
                           [&](std::size_t i) { return std::uint64_t{word_of(part.floats[i])}; });
  if (threadIdx.x == 0) add_integer(args.rows + row * args.slots + part.slot, fingerprint);
}

__global__ void fingerprint_sum_parts(SumFingerprintArgs args) {
  const SumPart part = args.parts[blockIdx.x];
  const std::int64_t* const sums = args.sums + part.offset;
  const std::int64_t fingerprint =
      fingerprint_of_block(kGradientBuffer, part.first, part.size,
                           [&](std::size_t i) { return static_cast<std::uint64_t>(sums[i]); });
  if (threadIdx.x != 0) return;
  add_integer(args.fingerprints + part.slot, fingerprint);
  add_integer(args.whole, fingerprint);
}

}  // namespace

void NativeOps::fingerprint_kept(Stream& stream, const KeptFingerprintArgs& args) {
  LOCKSTEP_CHECK(args.count > 0);
  launch(on(stream), {dim3(static_cast<unsigned>(args.count)), dim3(kFingerprintThreads)}, fingerprint_parts,
         args);
}

void NativeOps::fingerprint_sums(Stream& stream, const SumFingerprintArgs& args) {
  LOCKSTEP_CHECK(args.count > 0);
  launch(on(stream), {dim3(static_cast<unsigned>(args.count)), dim3(kFingerprintThreads)},
         fingerprint_sum_parts, args);
}

}  // namespace lockstep::LOCKSTEP_GPU
