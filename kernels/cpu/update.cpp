// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The optimiser step, elementwise and SIMD: one pass over gradient, buffers and weights; and averages of weights.
#include "kernels/cpu/ops.hpp"
#include "kernels/cpu/simd_targets.hpp"
#include "kernels/optimizers/rule_steps.hpp"
#include "kernels/optimizers/update_rule.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/update.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/activation_math_inl.hpp"
#include "kernels/cpu/for_each_vector_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

#undef LOCKSTEP_RULE
#define LOCKSTEP_RULE HWY_INLINE
#include "kernels/optimizers/rules_inl.hpp"

HWY_INLINE void add_squares(double* lanes, std::size_t count, const float* x) {
  for (std::size_t lane = 0; lane < count; ++lane)
    lanes[lane] += static_cast<double>(x[lane]) * static_cast<double>(x[lane]);
}

HWY_INLINE double add_lanes(double* lanes) {
  for (int half = kNormLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

double sum_of_squares(std::size_t size, const float* x) {
  double lanes[kNormLanes] = {};
  for (std::size_t i = 0; i < size; i += kNormLanes)
    add_squares(lanes, size - i < kNormLanes ? size - i : kNormLanes, x + i);
  return add_lanes(lanes);
}

/// Squares of the direction in which a tensor is about to move; nothing moves yet.
template <class Rule>
double direction_squares(const typename Rule::Step& step, const TensorFactors& own, std::size_t size,
                         const float* g, float* const* buffers, const float* w) {
  double lanes[kNormLanes] = {};
  float direction[kNormLanes];
  for (std::size_t first = 0; first < size; first += kNormLanes) {
    const std::size_t count = size - first < kNormLanes ? size - first : kNormLanes;
    for_each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
      hn::Vec<decltype(d)> kept[Rule::kBuffers];
      for (int b = 0; b < Rule::kBuffers; ++b) kept[b] = hn::LoadU(d, buffers[b] + first + i);
      hn::StoreU(Rule::direction(VectorMath<decltype(d)>(), step, own, hn::LoadU(d, g + first + i), kept,
                                 hn::LoadU(d, w + first + i)),
                 d, direction + i);
    });
    add_squares(lanes, count, direction);
  }
  return add_lanes(lanes);
}

/// The factors of this tensor at this step.
template <class Rule>
TensorFactors factors_of(const typename Rule::Step& step, const UpdateTensor& tensor, const float* g,
                         float* const* buffers, const float* w) {
  const TensorFactors own = own_factors(step.decay, step.rate, tensor);
  if constexpr (kUsesNorms<Rule>) {
    double squares = 0;
    if constexpr (Rule::kMeasuresDirection)
      squares = direction_squares<Rule>(step, own, tensor.size, g, buffers, w);
    else
      squares = sum_of_squares(tensor.size, g);
    return Rule::adapted(step, tensor, own, std::sqrt(sum_of_squares(tensor.size, w)), std::sqrt(squares));
  } else {
    return own;
  }
}

template <class Rule>
void move_range(const typename Rule::Step& step, const TensorFactors& factors, std::size_t size,
                const float* g, float* const* buffers, float* w) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    constexpr int kBuffers = Rule::kBuffers;
    hn::Vec<decltype(d)> kept[kBuffers + 1];
    for (int b = 0; b < kBuffers; ++b) kept[b] = hn::LoadU(d, buffers[b] + i);
    auto weight = hn::LoadU(d, w + i);
    Rule::move(VectorMath<decltype(d)>(), step, factors, hn::LoadU(d, g + i), kept, weight);
    for (int b = 0; b < kBuffers; ++b) hn::StoreU(kept[b], d, buffers[b] + i);
    hn::StoreU(weight, d, w + i);
  });
}

template <class Rule>
void update_with(const StepScalars& scalars, std::span<const UpdateTensor> tensors, const float* g,
                 float* const* buffers, float* w) {
  typename Rule::Step step;
  std::memcpy(&step, scalars.at, sizeof step);
  for (const UpdateTensor& tensor : tensors) {
    if (!tensor.moves) continue;
    float* parts[kMostBuffers] = {};
    for (int b = 0; b < Rule::kBuffers; ++b) parts[b] = buffers[b] + tensor.offset;
    const float* gradient = g + tensor.offset;
    float* weights = w + tensor.offset;
    move_range<Rule>(step, factors_of<Rule>(step, tensor, gradient, parts, weights), tensor.size, gradient,
                     parts, weights);
  }
}

void clip_by(std::size_t size, const ClipStep& clip, float* g) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(clipped(VectorMath<decltype(d)>(), clip, hn::LoadU(d, g + i)), d, g + i);
  });
}

void average_weights(float share, std::size_t size, const float* w, float* average) {
  for_each_vector(size, [&](auto d, std::size_t i) HWY_ATTR {
    const auto before = hn::LoadU(d, average + i);
    const auto distance = hn::Sub(hn::LoadU(d, w + i), before);
    hn::StoreU(multiply_add(hn::Set(d, share), distance, before), d, average + i);
  });
}

void update_by(UpdateRule rule, const StepScalars& step, std::span<const UpdateTensor> tensors,
               const float* g, float* const* buffers, float* w) {
  visit_rule(rule, [&](auto which) { update_with<decltype(which)>(step, tensors, g, buffers, w); });
}

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(sum_of_squares);
HWY_EXPORT(clip_by);
HWY_EXPORT(update_by);
HWY_EXPORT(average_weights);

double sum_of_squares(std::span<const float> numbers) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares)(numbers.size(), numbers.data());
}

void clip(std::size_t size, const ClipStep& step, float* g) {
  HWY_DYNAMIC_DISPATCH(clip_by)(size, step, g);
}

void update(UpdateRule rule, const StepScalars& step, std::span<const UpdateTensor> tensors, const float* g,
            float* const* buffers, float* w) {
  HWY_DYNAMIC_DISPATCH(update_by)(rule, step, tensors, g, buffers, w);
}

void average(float share, std::size_t size, const float* w, float* average) {
  HWY_DYNAMIC_DISPATCH(average_weights)(share, size, w, average);
}

}  // namespace lockstep::cpu
#endif
