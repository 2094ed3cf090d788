// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fingerprints of a step's buffers (kernels/numerics/fingerprint.hpp), computed where these lie, before the
/// update: a block for each part of a buffer, a tree over its threads, one atomic addition.
///
/// Limit: 8 bytes of sums, 4 of weights and 4 of each of the optimiser's buffers a parameter, which the update
/// loads again right behind it: Net (21,840) 0.35 MB with momentum, LeNet (129,068) 2.1 MB, from L2 0.1 and 0.4 us.
/// What counts is the launch and how often a thread waits for L2: with 16 loads one after another it was 5.8 us of a step on an H100.
#include "common/error.hpp"
#include "kernels/cuda/exact_sum.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/numerics/fingerprint.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr unsigned kFingerprintThreads = 256;
/// Of a thread: their loads are on their way together, where one after the other would each wait for the L2 cache.
constexpr int kWordsAtOnce = 4;

__device__ std::uint64_t word_of(std::int64_t sum) {
  return static_cast<std::uint64_t>(sum);
}
__device__ std::uint64_t word_of(float number) {
  std::uint32_t bits = 0;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

/// What this thread's words of the part add to the fingerprint.
template <class Number>
__device__ std::uint64_t sum_of_words(const FingerprintPart& part, const Number* numbers) {
  std::uint64_t sum = 0;
  for (std::size_t first = threadIdx.x; first < part.size; first += kWordsAtOnce * kFingerprintThreads) {
    std::uint64_t words[kWordsAtOnce];
#pragma unroll
    for (int j = 0; j < kWordsAtOnce; ++j) {
      const std::size_t i = first + j * kFingerprintThreads;
      words[j] = i < part.size ? word_of(numbers[i]) : 0;
    }
#pragma unroll
    for (int j = 0; j < kWordsAtOnce; ++j)
      sum += words[j] * word_multiplier(part.buffer, part.first + first + j * kFingerprintThreads);
  }
  return sum;
}

__global__ void fingerprint_parts(FingerprintArgs args) {
  LOCKSTEP_SHARED(std::uint64_t, sums, kFingerprintThreads);
  // A halted state stays behind its last step, and nobody reads what is added there.
  const auto row = static_cast<std::size_t>(args.state->steps_done);
  const FingerprintPart part = args.parts[blockIdx.x];
  sums[threadIdx.x] = part.sums != nullptr ? sum_of_words(part, part.sums) : sum_of_words(part, part.floats);
  for (unsigned half = kFingerprintThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  add_integer(args.rows + row * args.slots + part.slot, static_cast<std::int64_t>(sums[0]));
}

}  // namespace

void fingerprint(cudaStream_t stream, const FingerprintArgs& args) {
  LOCKSTEP_CHECK(args.count > 0);
  launch(stream, LaunchShape{dim3(static_cast<unsigned>(args.count)), dim3(kFingerprintThreads)},
         fingerprint_parts, args);
}

}  // namespace lockstep::LOCKSTEP_GPU
