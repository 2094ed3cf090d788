// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An average of the weights moves a share of the way to them: a thread for each number.
///
/// Limit: weights and average are read, the average is written: 12 bytes a parameter, 21,840 parameters: 0.26 MB, in
/// L2; the launch is most of it.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/threads.cuh"

namespace lockstep::LOCKSTEP_GPU {
namespace {

__global__ void move_average(std::uint32_t count, AverageArgs args) {
  const std::uint32_t i = thread_number();
  if (i >= count || (args.state != nullptr && args.state->halted != 0)) return;
  const float share = args.state != nullptr && args.state->step == 1 ? 1.0F : args.share;
  const float before = args.average[i];
  args.average[i] = fmaf(share, args.weights[i] - before, before);
}

}  // namespace

void average(cudaStream_t stream, const AverageArgs& args) {
  const std::uint32_t count = thread_count(args.parameters);
  if (count > 0) launch(stream, thread_each(count), move_average, count, args);
}

}  // namespace lockstep::LOCKSTEP_GPU
