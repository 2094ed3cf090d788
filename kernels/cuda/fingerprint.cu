// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fingerprints of what a step keeps and no update reads (running means of batch_norm): a block for each part of it, a tree
/// over its threads, one atomic addition. All else is fingerprinted by the update, which has it in registers (update.cu).
#include "common/error.hpp"
#include "kernels/cuda/fingerprint.cuh"
#include "kernels/cuda/kernels.hpp"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr unsigned kFingerprintThreads = 256;

__global__ void fingerprint_parts(KeptFingerprintArgs args) {
  LOCKSTEP_SHARED(std::uint64_t, sums, kFingerprintThreads);
  // A halted state stays behind its last step, and what is added there is not read.
  const auto row = static_cast<std::size_t>(args.state->steps_done);
  const KeptPart part = args.parts[blockIdx.x];
  std::uint64_t sum = 0;
  for (std::size_t i = threadIdx.x; i < part.size; i += kFingerprintThreads)
    sum += word_of(part.floats[i]) * word_multiplier(kWeightsBuffer, part.first + i);
  sums[threadIdx.x] = sum;
  for (unsigned half = kFingerprintThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  add_integer(args.rows + row * args.slots + part.slot, static_cast<std::int64_t>(sums[0]));
}

}  // namespace

void fingerprint_kept(cudaStream_t stream, const KeptFingerprintArgs& args) {
  LOCKSTEP_CHECK(args.count > 0);
  launch(stream, LaunchShape{dim3(static_cast<unsigned>(args.count)), dim3(kFingerprintThreads)},
         fingerprint_parts, args);
}

}  // namespace lockstep::LOCKSTEP_GPU
