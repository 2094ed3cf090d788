// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The update rules that kernels know, and what they are told at each step.
///
/// A rule is arithmetic on one parameter. Its gradient, its buffers and the weight go in, the
/// latter two come out. It is written once (kernels/optimizers/rules_inl.hpp) for numbers that may be SIMD
/// vectors of a CPU or floats of a GPU's thread, so that all devices round in the same order.
#pragma once

#include "kernels/numerics/random.hpp"  // LOCKSTEP_HOST_DEVICE

#include <cmath>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>

namespace lockstep {

enum class UpdateRule {
  kSgd,
  kSgdMomentum,
  kSgdNesterov,
  kAdam,
  kAdamAmsgrad,
  kAdamW,
  kAdamWAmsgrad,
  kRmsprop,
  kRmspropMomentum,
  kLars,
  kLamb,
  kLion,
};

/// The most buffers of a rule: numbers remembered of each parameter, each kind in a buffer of arena order.
inline constexpr int kMostBuffers = 3;

inline constexpr int kStepScalars = 8;

/// The numbers of one step for a rule. Their meaning is the rule's: its Step, packed.
struct StepScalars {
  float at[kStepScalars] = {};
};

/// @param step  a struct of floats
template <class Step>
StepScalars pack_scalars(const Step& step) {
  static_assert(std::is_trivially_copyable_v<Step> && sizeof(Step) <= sizeof(StepScalars));
  StepScalars scalars;
  std::memcpy(scalars.at, &step, sizeof step);
  return scalars;
}

/// A range of the arena that a rule treats alike. A tensor, or neighbouring tensors where the rule looks at
/// no norms.
struct UpdateTensor {
  std::size_t offset = 0, size = 0;
  float decay = 1;     ///< times the step's weight decay; 0: none
  float rate = 1;      ///< times the step's rate
  bool adapts = true;  ///< a separate rate applies to it, in rules that have one
  bool moves = true;   ///< false: its weights and what is remembered of them stay as they are
};

/// The factors of one tensor at a step.
struct TensorFactors {
  float decay = 0;
  float rate = 0;
  float trust = 1;  ///< for rules with a rate for each tensor, which is this times `rate`
  bool moves = true;
};

/// Before its norms are looked at. @param decay, rate  the step's
LOCKSTEP_HOST_DEVICE inline TensorFactors own_factors(float decay, float rate, const UpdateTensor& tensor) {
  return {tensor.decay == 0 ? 0 : decay * tensor.decay, rate * tensor.rate, 1, tensor.moves};
}

/// True if a rule looks at the norms of a tensor's weights and gradient or direction. Ranges must then be single
/// tensors.
bool uses_norms(UpdateRule rule);
/// How many numbers it remembers of each parameter.
int buffers_of(UpdateRule rule);

/// The sum of a tensor's squares is the sum of so many partial sums. The i-th one has the elements i,
/// i + kNormLanes, ... in this order, and they are added in a tree that halves their number each time. In
/// double, where a float's square is exact.
inline constexpr int kNormLanes = 256;

/// The norm of all tensors together: the sums of their squares are added up one after the other.
/// @param squares  [tensors], in the order of the network
LOCKSTEP_HOST_DEVICE inline double norm_of(const double* squares, std::size_t tensors) {
  double sum = 0;
  for (std::size_t i = 0; i < tensors; ++i) sum += squares[i];
  return ::sqrt(sum);
}

// How a gradient is clipped before a rule sees it.

/// An element becomes factor times itself, and of that what lies between -limit and limit.
struct ClipStep {
  float factor = 1;
  float limit = HUGE_VALF;
};

/// The factor for a gradient of this norm that may have no more than `most`. Equal to torch's clip_grad_norm_, in
/// double, rounded once.
LOCKSTEP_HOST_DEVICE inline float clip_factor(double most, double norm) {
  const double factor = most / (norm + 1e-6);
  return factor < 1 ? static_cast<float>(factor) : 1.0F;
}

}  // namespace lockstep
