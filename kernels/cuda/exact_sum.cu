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

struct Accumulate {
  const float* g;
  ExactTarget to;

  template <int kWidth>
  __device__ void at(std::size_t first) const {
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
};

struct Convert {
  const std::int64_t* sum;
  const std::int16_t* exponents;  ///< null: kExactExponent
  float* g;

  template <int kWidth>
  __device__ void at(std::size_t first) const {
    const Pack<std::int64_t, kWidth> sums = load_pack<kWidth>(sum + first);
    Pack<std::int16_t, kWidth> units;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) units.at[i] = kExactExponent;
    if (exponents != nullptr) units = load_pack<kWidth>(exponents + first);
    Pack<float, kWidth> values;
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      values.at[i] = static_cast<float>(static_cast<double>(sums.at[i]) * double_of_exponent(units.at[i]));
    store_pack(g + first, values);
  }
};

/// A thread for each kWidth elements.
template <int kWidth, class Function>
__global__ void for_packs(std::size_t size, Function f) {
  const std::size_t first = std::size_t{thread_number()} * kWidth;
  if (first + kWidth <= size) return f.template at<kWidth>(first);
#pragma unroll 1
  for (std::size_t i = first; i < size; ++i) f.template at<1>(i);
}

/// @param starts  of the tensors, which may lie at odd places
template <class Function, typename... T>
void queue_packs(cudaStream_t stream, std::size_t size, const Function& f, const T*... starts) {
  if (size == 0) return;
  const auto run = [&]<int kWidth>() {
    const std::uint32_t packs = thread_count((size + kWidth - 1) / kWidth);
    launch(stream, thread_each(packs), for_packs<kWidth, Function>, size, f);
  };
  run_in_packs<2>(run, 2, starts...);
}

}  // namespace

void NativeOps::accumulate_exact(Stream& stream, std::size_t size, const float* g, const ExactTarget& to) {
  queue_packs(on(stream), size, Accumulate{g, to}, g, to.sums);
}

void NativeOps::exact_to_fp32(Stream& stream, std::size_t size, const std::int64_t* sum,
                              const std::int16_t* exponents, float* g) {
  queue_packs(on(stream), size, Convert{sum, exponents, g}, g, sum, exponents);
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
  add_halves(kFingerprintThreads / 2, 1, sums);
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
