// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Norms that a step needs before it moves anything.
///
/// A rule that looks at norms has a launch before the update, with a block for each tensor. So has a gradient that is
/// clipped by its norm, and then one of a single thread.
#include "kernels/cuda/update_inputs.cuh"

namespace lockstep::LOCKSTEP_GPU {
namespace {

/// Adds up the lanes' sums, into the first one's. All threads of the block call it.
__device__ double add_lanes(double* lanes, double mine) {
  lanes[threadIdx.x] = mine;
  add_halves(kNormLanes / 2, 1, lanes);
  __syncthreads();
  return lanes[0];
}

/// Calls add(load(i)) for this lane's numbers i of a tensor, in order. Eight loads are under way at a time. A block
/// that waits for each in turn needs some 0.5 us for 256 numbers, by estimate 5 ms for a tensor of 2.4 million.
template <class Load, class Add>
__device__ void for_lane(std::size_t size, const Load& load, const Add& add) {
  constexpr int kAhead = 8;
  std::size_t i = threadIdx.x;
  for (; i + std::size_t{kAhead - 1} * kNormLanes < size; i += std::size_t{kAhead} * kNormLanes) {
    decltype(load(i)) loaded[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) loaded[k] = load(i + static_cast<std::size_t>(k) * kNormLanes);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) add(loaded[k]);
  }
  for (; i < size; i += kNormLanes) add(load(i));
}

/// The number that a rule measures besides weights: the gradient, or the direction in which it is about to move.
template <class Rule>
__device__ double measured(const UpdateArgs& args, const StepFacts& facts, const TensorFactors& own,
                           const Parameters<Rule, 1>& loaded) {
  const float g = clipped_gradient(args, facts, loaded).at[0];
  if constexpr (Rule::kMeasuresDirection) {
    float buffers[Rule::kBuffers];
#pragma unroll
    for (int b = 0; b < Rule::kBuffers; ++b) buffers[b] = loaded.buffers[b].at[0];
    return Rule::direction(ScalarMath(), step_of<Rule>(facts.scalars), own, g, buffers, loaded.weights.at[0]);
  } else {
    return g;
  }
}

/// The factors of a tensor from norms: a block for each.
template <class Rule>
__global__ void measure_tensors(UpdateArgs args) {
  LOCKSTEP_SHARED(double, weight_lanes, kNormLanes);
  LOCKSTEP_SHARED(double, measured_lanes, kNormLanes);
  const UpdateTensor tensor = args.tensors.ranges[blockIdx.x];
  const StepFacts facts = read_facts(args);
  const auto step = step_of<Rule>(facts.scalars);
  const TensorFactors own = own_factors(step.decay, step.rate, tensor);
  double of_weights = 0, of_measured = 0;
  for_lane(
      tensor.size, [&](std::size_t i) { return load_parameters<Rule, 1>(args, tensor.offset + i); },
      [&](const Parameters<Rule, 1>& loaded) {
        const double w = loaded.weights.at[0], x = measured(args, facts, own, loaded);
        of_weights += w * w;
        of_measured += x * x;
      });
  const double weights = add_lanes(weight_lanes, of_weights);
  const double others = add_lanes(measured_lanes, of_measured);
  if (threadIdx.x != 0) return;
  args.tensors.factors[blockIdx.x] = Rule::adapted(step, tensor, own, ::sqrt(weights), ::sqrt(others));
}

/// The squares of a tensor's mean gradient: a block for each. No rule is asked.
__global__ void square_gradient(UpdateArgs args, GradientNorm norm) {
  LOCKSTEP_SHARED(double, lanes, kNormLanes);
  const UpdateTensor tensor = norm.tensors[blockIdx.x];
  const std::int64_t samples = args.sums[kSamples];
  double mine = 0;
  for_lane(
      tensor.size,
      [&](std::size_t i) {
        Parameters<Sgd, 1> loaded;
        load_sums(args, tensor.offset + i, loaded);
        return loaded;
      },
      [&](const Parameters<Sgd, 1>& loaded) {
        const double g = mean_gradient(args, loaded, samples).at[0];
        mine += g * g;
      });
  const double sum = add_lanes(lanes, mine);
  if (threadIdx.x == 0) norm.squares[blockIdx.x] = sum;
}

/// One thread.
__global__ void find_clip_factor(GradientNorm norm) {
  *norm.factor = clip_factor(norm.most, norm_of(norm.squares, static_cast<std::size_t>(norm.count)));
}

LaunchShape block_each(int tensors) {
  return {dim3(static_cast<unsigned>(tensors)), dim3(kNormLanes)};
}

}  // namespace

void adapt_factors(cudaStream_t stream, const UpdateArgs& args) {
  LOCKSTEP_CHECK(args.tensors.count > 0 && args.tensors.factors != nullptr);
  visit_rule(args.rule, [&](auto which) {
    using Rule = decltype(which);
    if constexpr (kUsesNorms<Rule>)
      launch(stream, block_each(args.tensors.count), measure_tensors<Rule>, args);
  });
}

void NativeOps::gradient_norm(Stream& stream, const UpdateArgs& args, const GradientNorm& norm) {
  LOCKSTEP_CHECK(norm.count > 0 && norm.squares != nullptr && norm.factor != nullptr);
  launch(on(stream), block_each(norm.count), square_gradient, args, norm);
  launch(on(stream), {dim3(1), dim3(1)}, find_clip_factor, norm);
}

}  // namespace lockstep::LOCKSTEP_GPU
