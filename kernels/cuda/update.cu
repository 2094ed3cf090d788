// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The end of a training step: the mean gradient out of the sums and the optimiser's step. All that makes
/// the next step possible is in the same launch.
///
/// Versions: (1) mean, update, zeroing and bookkeeping as four kernels: 5 us of launches. (2) One kernel; a second one
/// of a single thread advances the state, because no block may see it change. (3) One launch: each block reads the
/// counters and state that it needs, then gets a ticket, and the block with the last ticket changes them. (4) Two
/// parameters a thread, 16 bytes of sums a load. (5) The ticket is drawn before the weights move, not after: its trip
/// to L2 and back hides under theirs. (6) Sums, weights and buffers are loaded together with the counters, before the
/// barrier: one trip to L2 instead of three. (7) The rule is a template argument; what it is told comes from the state,
/// where the last block puts what the next step is told, so that a table of a whole series costs no load that depends
/// on another. (8) It computes the fingerprints of what it reads, before it moves that; a separate kernel before it was
/// 5.8 us of a step on an H100, most of it a launch and the same loads once more. (Not timed there yet. By its
/// instructions, some 300 a warp, 0.3 us for Net.) (9) The warps of a block add up their fingerprints before anything
/// reaches the L2 cache, where additions to one number wait for each other: 32 in place of 250 for Net's largest
/// tensor.
///
/// The units of the sums are an array of 2 bytes a parameter, loaded with the rest. There is none while
/// every tensor has the first unit, as in most runs. A search for the parameter's tensor would have been a
/// chain of loads before the division, and scales of 8 bytes four times the traffic.
///
/// Norms are computed before: gradient_norms.cu.
///
/// Limit, with momentum: 16 bytes of sums (read and zeroed) and 16 of weights and momentum a parameter. Net
/// (21,840) 0.7 MB, 43 blocks; LeNet (129,068) 4.1 MB, 253 blocks: 0.2 and 0.8 us from L2. Most of the time is the
/// chain of one load -> barrier and fence -> division in double -> store, about 0.7 us.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/cuda/update_inputs.cuh"

namespace lockstep::LOCKSTEP_GPU {
namespace {

constexpr int kParametersPerThread = 2;

template <class Rule>
__device__ TensorFactors factors_of(const UpdateArgs& args, const typename Rule::Step& step, int range) {
  if (args.tensors.count == 0) return {step.decay, step.rate};
  if (kUsesNorms<Rule>) return args.tensors.factors[range];
  return own_factors(step.decay, step.rate, args.tensors.ranges[range]);
}

template <class Rule, int kWidth>
__device__ void move_weights(const UpdateArgs& args, const StepFacts& facts,
                             const Parameters<Rule, kWidth>& from, std::size_t first) {
  const auto step = step_of<Rule>(facts.scalars);
  const Pack<float, kWidth> mean = clipped_gradient(args, facts, from);
  Parameters<Rule, kWidth> to = from;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    float buffers[Rule::kBuffers + 1] = {};
#pragma unroll
    for (int b = 0; b < Rule::kBuffers; ++b) buffers[b] = from.buffers[b].at[i];
    const TensorFactors factors = factors_of<Rule>(args, step, from.ranges.at[i]);
    if (!factors.moves) continue;
    Rule::move(ScalarMath(), step, factors, mean.at[i], buffers, to.weights.at[i]);
#pragma unroll
    for (int b = 0; b < Rule::kBuffers; ++b) to.buffers[b].at[i] = buffers[b];
  }
#pragma unroll
  for (int b = 0; b < Rule::kBuffers; ++b) store_pack(args.buffers[b] + first, to.buffers[b]);
  store_pack(args.weights + first, to.weights);
}

template <class Rule, int kWidth>
__device__ void update_pack(const UpdateArgs& args, const StepFacts& facts,
                            const Parameters<Rule, kWidth>& from, std::size_t first) {
  if (facts.moves) move_weights(args, facts, from, first);
  store_pack(args.sums + kCounterSlots + first, Pack<std::int64_t, kWidth>{});
}

/// Words of the i-th of these parameters for the fingerprints of its tensor: gradient, weights, each buffer.
template <class Rule, int kWidth>
struct FingerprintWords : WarpWords<Rule::kBuffers == 0   ? 2
                                    : Rule::kBuffers <= 2 ? 4
                                                          : 8> {
  static constexpr int kUsed = 2 + Rule::kBuffers;
  static_assert(2 + kMostBuffers <= 8, "as many words as a WarpWords can have");

  /// @param word  its number in each of these buffers
  __device__ void add(const Parameters<Rule, kWidth>& from, int i, std::uint64_t word) {
    this->v[0] += word_of(from.sums.at[i]) * word_multiplier(kGradientBuffer, word);
    this->v[1] += word_of(from.weights.at[i]) * word_multiplier(kWeightsBuffer, word);
#pragma unroll
    for (int b = 0; b < Rule::kBuffers; ++b)
      this->v[2 + b] += word_of(from.buffers[b].at[i]) * word_multiplier(kOptimizerBuffer + b, word);
  }
};

__device__ std::int64_t* fingerprint_row(const UpdateArgs& args, const StepFacts& facts) {
  return args.fingerprints.rows + static_cast<std::size_t>(facts.steps_done) * args.fingerprints.slots;
}

/// Fingerprints parameters whose neighbours are of another tensor.
template <class Rule, int kWidth>
__device__ void fingerprint_alone(const UpdateArgs& args, const StepFacts& facts,
                                  const Parameters<Rule, kWidth>& from, std::size_t first) {
  const StepFingerprints& to = args.fingerprints;
  const FingerprintTensor* tensor = to.tensors + to.tensor_of[first / kFingerprintStride];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    while (tensor[1].offset <= first + i) ++tensor;
    FingerprintWords<Rule, kWidth> words;
    words.add(from, i, tensor->first + (first + i - tensor->offset));
#pragma unroll
    for (int k = 0; k < words.kUsed; ++k)
      add_integer(fingerprint_row(args, facts) + tensor->slots[k], static_cast<std::int64_t>(words.v[k]));
  }
}

/// Fingerprints of the warps of a block; each word is added up before it leaves.
template <class Rule, int kWidth>
struct BlockFingerprints {
  using Words = FingerprintWords<Rule, kWidth>;
  static constexpr int kUsed = Words::kUsed, kWarps = kThreadsOfEach / 32, kCount = kWarps * kUsed;
  static constexpr std::uint32_t kNoSlot =
      ~0U;  ///< for a warp without parameters, or that adds them by itself

  std::uint64_t* words;  ///< [warp][kUsed], shared
  std::uint32_t* slots;  ///< [warp][kUsed], shared: where each goes

  /// The number of the tensor that a warp begins in; any number beyond the last parameter.
  static __device__ std::int32_t tensor_of_warp(const UpdateArgs& args, std::size_t first) {
    const std::size_t of_warp = first - threadIdx.x % 32 * kWidth;
    const StepFingerprints& from = args.fingerprints;
    return from.rows != nullptr && of_warp < args.parameters ? from.tensor_of[of_warp / kFingerprintStride]
                                                             : 0;
  }

  /// All threads of the block. @param is_whole  this one has parameters
  __device__ void put(const UpdateArgs& args, const StepFacts& facts, const Parameters<Rule, kWidth>& from,
                      std::size_t first, bool is_whole, std::int32_t number) const {
    const std::size_t of_warp = first - threadIdx.x % 32 * kWidth;
    const FingerprintTensor* tensor = args.fingerprints.tensors + number;
    const std::uint64_t end = tensor[1].offset, before = tensor->first - tensor->offset;
    const unsigned index = Words::index(), at = threadIdx.x / 32 * kUsed + index;
    const bool is_mine = Words::is_first() && index < kUsed;
    const std::uint32_t slot = is_mine ? tensor->slots[index] : kNoSlot;
    const bool is_together = of_warp + std::size_t{32} * kWidth <= end;
    if (is_mine) slots[at] = is_together ? slot : kNoSlot;
    if (!is_together) {
      if (is_whole) fingerprint_alone(args, facts, from, first);
      return;
    }
    Words mine;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) mine.add(from, i, before + first + i);
    const std::uint64_t total = mine.total();
    if (is_mine) words[at] = total;
  }

  /// After a __syncthreads(): a thread for each word. Warps of one tensor are neighbours.
  __device__ void add(const UpdateArgs& args, const StepFacts& facts) const {
    if (threadIdx.x >= kUsed) return;
    std::uint64_t sum = 0;
#pragma unroll
    for (unsigned i = threadIdx.x; i < kCount; i += kUsed) {
      const std::uint32_t slot = slots[i];
      if (slot == kNoSlot) continue;
      sum += words[i];
      if (i + kUsed < kCount && slots[i + kUsed] == slot) continue;
      add_integer(fingerprint_row(args, facts) + slot, static_cast<std::int64_t>(sum));
      sum = 0;
    }
  }
};

/// Counts the step, for the first threads of the block with the last ticket.
__device__ void advance(const UpdateArgs& args, const StepFacts& facts) {
  __threadfence();
  StepState& state = *args.state;
  const unsigned slot = threadIdx.x;
  const bool moves = facts.moves;
  if (slot < kStepScalars && moves && facts.steps_done < kLongestSeries)
    state.scalars.at[slot] = state.ahead[facts.steps_done].at[slot];
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

template <class Rule, int kWidth>
__global__ void update_parameters(UpdateArgs args) {
  using Fingerprints = BlockFingerprints<Rule, kWidth>;
  LOCKSTEP_SHARED(std::uint32_t, ticket, 1);
  LOCKSTEP_SHARED(std::uint64_t, words, Fingerprints::kCount);
  LOCKSTEP_SHARED(std::uint32_t, slots, Fingerprints::kCount);
  const Fingerprints fingerprints = {words, slots};
  const std::size_t first = std::size_t{thread_number()} * kWidth;
  const bool is_whole = first + kWidth <= args.parameters;
  Parameters<Rule, kWidth> mine;
  if (is_whole) mine = load_parameters<Rule, kWidth>(args, first);
  const std::int32_t tensor = Fingerprints::tensor_of_warp(args, first);
  // After them, so that all are on their way together. These are equal in a warp, and the compiler waits for such.
  const StepFacts facts = read_facts(args);
  __syncthreads();
  std::uint32_t blocks_before = 0;  // that had read their facts before
  if (threadIdx.x == 0) {           // on its way during what follows
    __threadfence();
    blocks_before = atomicAdd(&args.state->blocks_done, 1U);
  }
  if (args.fingerprints.rows != nullptr) fingerprints.put(args, facts, mine, first, is_whole, tensor);
  if (is_whole) {
    update_pack(args, facts, mine, first);
  } else {
#pragma unroll 1
    for (std::size_t i = first; i < args.parameters; ++i) {
      const auto one = load_parameters<Rule, 1>(args, i);
      if (args.fingerprints.rows != nullptr) fingerprint_alone(args, facts, one, i);
      update_pack(args, facts, one, i);
    }
  }
  if (threadIdx.x == 0) ticket[0] = blocks_before;
  __syncthreads();
  if (args.fingerprints.rows != nullptr) fingerprints.add(args, facts);
  if (ticket[0] == gridDim.x - 1) advance(args, facts);
}

template <class Rule>
void queue_update(cudaStream_t stream, const UpdateArgs& args) {
  for (int b = 0; b < Rule::kBuffers; ++b) LOCKSTEP_CHECK(args.buffers[b] != nullptr);
  if constexpr (kUsesNorms<Rule>) adapt_factors(stream, args);
  const auto run = [&]<int kWidth>() {
    const std::uint32_t packs = thread_count((args.parameters + kWidth - 1) / kWidth);
    launch(stream, thread_each(packs), update_parameters<Rule, kWidth>, args);
  };
  static_assert(kMostBuffers == 3);
  run_in_packs<kParametersPerThread>(run, kParametersPerThread, args.sums + kCounterSlots, args.weights,
                                     args.fp32_sums, args.exponents, args.tensors.range_of, args.buffers[0],
                                     args.buffers[1], args.buffers[2]);
}

}  // namespace

void NativeOps::update(Stream& stream, const UpdateArgs& args) {
  LOCKSTEP_CHECK(args.parameters > 0);
  LOCKSTEP_CHECK(args.fingerprints.rows == nullptr || args.fp32_sums == nullptr);
  visit_rule(args.rule, [&](auto which) { queue_update<decltype(which)>(on(stream), args); });
}

// An average of the weights moves by a share of the way to them. A thread for each number.
//
// Limit: weights and average are read, the average is written. 12 bytes a parameter, 21,840 parameters: 0.26 MB, in
// L2; the launch is most of it.

namespace {

__global__ void move_average(std::uint32_t count, AverageArgs args) {
  const std::uint32_t i = thread_number();
  if (i >= count || (args.state != nullptr && args.state->halted != 0)) return;
  const float share = args.state != nullptr && args.state->step == 1 ? 1.0F : args.share;
  const float before = args.average[i];
  args.average[i] = fmaf(share, args.weights[i] - before, before);
}

}  // namespace

void NativeOps::average(Stream& stream, const AverageArgs& args) {
  const std::uint32_t count = thread_count(args.parameters);
  if (count > 0) launch(on(stream), thread_each(count), move_average, count, args);
}

}  // namespace lockstep::LOCKSTEP_GPU
