// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Inputs of the kernels at the end of a step. They are the step's facts, the sums with their units, weights and
/// buffers, and the gradient that a rule is shown.
#pragma once

#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/sums.cuh"
#include "kernels/cuda/threads.cuh"
#include "kernels/numerics/sums.hpp"
#include "kernels/optimizers/rule_steps.hpp"
#include "kernels/optimizers/update_rule.hpp"

#include <cmath>

namespace lockstep::LOCKSTEP_GPU {
namespace {

#define LOCKSTEP_RULE __device__ inline
#include "kernels/optimizers/rules_inl.hpp"

/// Values that every thread reads before the last block changes them.
struct StepFacts {
  std::int64_t samples, steps_done;
  StepScalars scalars;
  ClipStep clip;
  bool moves;  ///< the step refused no number, nor did one before it
};

/// No branch: that would wait for the first of them before it loads the next.
__device__ StepFacts read_facts(const UpdateArgs& args) {
  const std::int64_t refused = args.sums[kRefused], samples = args.sums[kSamples];
  const std::uint32_t halted = args.state->halted;
  const float factor = args.clip.factor == nullptr ? 1.0F : *args.clip.factor;
  return {samples,
          args.state->steps_done,
          args.state->scalars,
          {factor, args.clip.limit},
          (refused | halted) == 0};
}

template <class Rule>
__device__ typename Rule::Step step_of(const StepScalars& scalars) {
  typename Rule::Step step;
  memcpy(&step, scalars.at, sizeof step);
  return step;
}

/// float(sum / (scale * count)) in double, as kernels/cpu/gradient_sum.cpp.
__device__ float mean_of(std::int64_t sum, double scale, std::int64_t count) {
  return static_cast<float>(static_cast<double>(sum) / (scale * static_cast<double>(count)));
}

/// Some neighbouring parameters before the step.
template <class Rule, int kWidth>
struct Parameters {
  Pack<std::int64_t, kWidth> sums = {};
  Pack<std::int16_t, kWidth> exponents = {};
  Pack<float, kWidth> fp32_sums = {}, weights = {}, buffers[Rule::kBuffers + 1] = {};
  Pack<std::int32_t, kWidth> ranges = {};
};

template <class Rule, int kWidth>
__device__ void load_sums(const UpdateArgs& args, std::size_t first, Parameters<Rule, kWidth>& loaded) {
  if (args.fp32_sums != nullptr) {
    loaded.fp32_sums = load_pack<kWidth>(args.fp32_sums + first);
  } else {
    loaded.sums = load_pack<kWidth>(args.sums + kCounterSlots + first);
    if (args.exponents != nullptr) loaded.exponents = load_pack<kWidth>(args.exponents + first);
  }
}

template <class Rule, int kWidth>
__device__ Parameters<Rule, kWidth> load_parameters(const UpdateArgs& args, std::size_t first) {
  Parameters<Rule, kWidth> loaded;
  loaded.weights = load_pack<kWidth>(args.weights + first);
#pragma unroll
  for (int b = 0; b < Rule::kBuffers; ++b) loaded.buffers[b] = load_pack<kWidth>(args.buffers[b] + first);
  if (args.tensors.count > 0) loaded.ranges = load_pack<kWidth>(args.tensors.range_of + first);
  load_sums(args, first,
            loaded);  // the last of them, since the compiler splits a pack of exponents at once
  return loaded;
}

template <class Rule, int kWidth>
__device__ Pack<float, kWidth> mean_gradient(const UpdateArgs& args, const Parameters<Rule, kWidth>& from,
                                             std::int64_t count) {
  Pack<float, kWidth> mean;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const double scale = args.exponents == nullptr ? kExactScale : double_of_exponent(-from.exponents.at[i]);
    mean.at[i] = args.fp32_sums != nullptr ? from.fp32_sums.at[i] / static_cast<float>(count)
                                           : mean_of(from.sums.at[i], scale, count);
  }
  return mean;
}

/// The gradient that the rule sees. The branch is that of the whole launch.
template <class Rule, int kWidth>
__device__ Pack<float, kWidth> clipped_gradient(const UpdateArgs& args, const StepFacts& facts,
                                                const Parameters<Rule, kWidth>& from) {
  Pack<float, kWidth> mean = mean_gradient(args, from, facts.samples);
  if (args.clip.factor == nullptr && args.clip.limit == HUGE_VALF) return mean;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) mean.at[i] = clipped(ScalarMath(), facts.clip, mean.at[i]);
  return mean;
}

}  // namespace
}  // namespace lockstep::LOCKSTEP_GPU
