// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The end of a training step: the mean gradient out of the sums, the SGD step, and all that makes the next
/// step possible, in one launch.
///
/// Versions: (1) mean, SGD, zeroing and bookkeeping as four kernels: 5 us of launches. (2) One kernel; a
/// second one of a single thread advances the state, because no block may see it change. (3) One launch: each
/// block reads what it needs of counters and state, then takes a ticket, and the block with the last ticket
/// changes them. (4) Two parameters a thread, 16 bytes of sums a load. (5) The ticket is taken before the
/// weights move, not after: its trip to L2 and back hides behind theirs. (6) Sums, weights and momentum are
/// loaded together with the counters, before the barrier: one trip to L2 instead of three.
///
/// The units of the sums are an array of 2 bytes a parameter, loaded with the rest, and none at all while
/// every tensor has the first unit, as in most runs. A search for the parameter's tensor would have been a
/// chain of loads before the division, and scales of 8 bytes four times the traffic.
///
/// Limit: 16 bytes of sums (read and zeroed) and 16 of weights and momentum a parameter: Net (21,840) 0.7 MB,
/// 43 blocks; LeNet (129,068) 4.1 MB, 253 blocks: 0.2 and 0.8 us from L2. What counts is the chain of
/// one load -> barrier and fence -> division in double -> store, about 0.7 us.
#include "kernels/cuda/exact_sum.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/thread_each.cuh"
#include "kernels/numerics/exact_sum.hpp"

#include <cmath>

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kParametersPerThread = 2;

/// What every thread reads before the last block changes it.
struct StepFacts {
  std::int64_t samples;
  float learning_rate;
  bool moves;  ///< the step refused no number, nor did one before it
};

/// No branch: that would wait for the first of them before it loads the next.
__device__ StepFacts read_facts(const UpdateArgs& args) {
  const std::int64_t refused = args.sums[kRefused], samples = args.sums[kSamples];
  const std::uint32_t halted = args.state->halted;
  return {samples, args.state->learning_rate, (refused | halted) == 0};
}

/// float(sum / (scale * count)) in double, as kernels/cpu/gradient_sum.cpp.
__device__ float mean_of(std::int64_t sum, double scale, std::int64_t count) {
  return static_cast<float>(static_cast<double>(sum) / (scale * static_cast<double>(count)));
}

/// Some neighbouring parameters before the step.
template <int kWidth>
struct Parameters {
  Pack<std::int64_t, kWidth> sums = {};
  Pack<std::int16_t, kWidth> exponents = {};
  Pack<float, kWidth> fp32_sums = {}, weights = {}, momentum = {};
};

template <int kWidth>
__device__ Parameters<kWidth> load_parameters(const UpdateArgs& args, std::size_t first) {
  Parameters<kWidth> loaded;
  if (args.fp32_sums != nullptr) {
    loaded.fp32_sums = load_pack<kWidth>(args.fp32_sums + first);
  } else {
    loaded.sums = load_pack<kWidth>(args.sums + kCounterSlots + first);
    if (args.exponents != nullptr) loaded.exponents = load_pack<kWidth>(args.exponents + first);
  }
  loaded.weights = load_pack<kWidth>(args.weights + first);
  if (args.sgd.momentum != 0) loaded.momentum = load_pack<kWidth>(args.momentum + first);
  return loaded;
}

template <int kWidth>
__device__ Pack<float, kWidth> mean_gradient(const UpdateArgs& args, const Parameters<kWidth>& from,
                                             std::int64_t count) {
  Pack<float, kWidth> mean;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const double scale = args.exponents == nullptr ? kExactScale : double_power_of_two(-from.exponents.at[i]);
    mean.at[i] = args.fp32_sums != nullptr ? from.fp32_sums.at[i] / static_cast<float>(count)
                                           : mean_of(from.sums.at[i], scale, count);
  }
  return mean;
}

/// w -= lr * direction, in the order of roundings of kernels/cpu/sgd.cpp.
template <int kWidth>
__device__ void move_weights(const UpdateArgs& args, const StepFacts& facts, const Parameters<kWidth>& from,
                             std::size_t first) {
  const Pack<float, kWidth> mean = mean_gradient(args, from, facts.samples);
  const bool has_momentum = args.sgd.momentum != 0;
  Pack<float, kWidth> w = from.weights, m = from.momentum;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float gradient = fmaf(args.sgd.weight_decay, w.at[i], mean.at[i]);
    m.at[i] = fmaf(args.sgd.momentum, m.at[i], gradient);
    const float ahead = args.sgd.nesterov ? fmaf(args.sgd.momentum, m.at[i], gradient) : m.at[i];
    w.at[i] = fmaf(-facts.learning_rate, has_momentum ? ahead : gradient, w.at[i]);
  }
  if (has_momentum) store_pack(args.momentum + first, m);
  store_pack(args.weights + first, w);
}

template <int kWidth>
__device__ void update_pack(const UpdateArgs& args, const StepFacts& facts, const Parameters<kWidth>& from,
                            std::size_t first) {
  if (facts.moves) move_weights(args, facts, from, first);
  store_pack(args.sums + kCounterSlots + first, Pack<std::int64_t, kWidth>{});
}

/// After all threads of the block have read their facts. @returns how many blocks had done so before
__device__ std::uint32_t take_ticket(StepState* state) {
  __threadfence();
  return atomicAdd(&state->blocks_done, 1U);
}

/// Counts the step, for the first threads of the block with the last ticket.
__device__ void advance(const UpdateArgs& args, bool moves) {
  __threadfence();
  StepState& state = *args.state;
  const unsigned slot = threadIdx.x;
  if (slot < kCounterSlots) {
    if (moves) {
      state.last[slot] = args.sums[slot];
      state.sums[slot] += args.sums[slot];
    }
    args.sums[slot] = 0;
  }
  if (slot != 0) return;
  state.blocks_done = 0;
  if (moves) {
    ++state.step;
    ++state.step_in_epoch;
    ++state.steps_done;
  } else {
    state.halted = 1;
  }
}

template <int kWidth>
__global__ void update(UpdateArgs args) {
  LOCKSTEP_SHARED(std::uint32_t, ticket, 1);
  const StepFacts facts = read_facts(args);
  const std::size_t first = std::size_t{thread_number()} * kWidth;
  const bool is_whole = first + kWidth <= args.parameters;
  Parameters<kWidth> mine;
  if (is_whole) mine = load_parameters<kWidth>(args, first);  // on their way together with the facts
  __syncthreads();
  std::uint32_t blocks_before = 0;
  if (threadIdx.x == 0) blocks_before = take_ticket(args.state);  // on its way during what follows
  if (is_whole) {
    update_pack(args, facts, mine, first);
  } else {
#pragma unroll 1
    for (std::size_t i = first; i < args.parameters; ++i)
      update_pack(args, facts, load_parameters<1>(args, i), i);
  }
  if (threadIdx.x == 0) ticket[0] = blocks_before;
  __syncthreads();
  if (ticket[0] == gridDim.x - 1) advance(args, facts.moves);
}

template <int kWidth>
bool in_packs(const UpdateArgs& args) {
  return is_packable<kWidth>(args.sums + kCounterSlots) && is_packable<kWidth>(args.weights) &&
         is_packable<kWidth>(args.momentum) && is_packable<kWidth>(args.fp32_sums) &&
         is_packable<kWidth>(args.exponents);
}

}  // namespace

void sgd_update(cudaStream_t stream, const UpdateArgs& args) {
  LOCKSTEP_CHECK(args.parameters > 0 && (args.momentum != nullptr || args.sgd.momentum == 0));
  if (in_packs<kParametersPerThread>(args)) {
    const std::size_t packs = (args.parameters + kParametersPerThread - 1) / kParametersPerThread;
    launch(stream, thread_each(thread_count(packs)), update<kParametersPerThread>, args);
  } else {
    launch(stream, thread_each(thread_count(args.parameters)), update<1>, args);
  }
}

}  // namespace lockstep::LOCKSTEP_GPU
