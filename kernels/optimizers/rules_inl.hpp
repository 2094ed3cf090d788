// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every update rule, and the way from its name to it: the one list of them for kernels.
///
/// Included inside a namespace by what compiles the rules for a device, once for each SIMD target of a CPU;
/// hence no include guard, and no includes: those are kernels/optimizers/update_rule.hpp. Before it,
/// LOCKSTEP_RULE says how such a function is declared there. `N` is the device's arithmetic:
/// N::Number, and of(float), fma(a, b, c) = a * b + c, add, sub, mul, div, sqrt, each rounded once; larger(a, b), which
/// is a if a > b and b otherwise, also where one is NaN, and smaller(a, b) likewise.
///
/// A rule with kUsesNorms is asked for a tensor's factors: adapted(), with the norm of its weights and that of its
/// gradient, or with kMeasuresDirection, that of direction(), which move() then computes once more: it need not be
/// kept.

#include "kernels/optimizers/adam_inl.hpp"
#include "kernels/optimizers/lamb_inl.hpp"
#include "kernels/optimizers/lars_inl.hpp"
#include "kernels/optimizers/rmsprop_inl.hpp"
#include "kernels/optimizers/sgd_inl.hpp"

/// What a rule sees of an element of the gradient that is clipped.
template <class N>
LOCKSTEP_RULE typename N::Number clipped(const N& n, const ClipStep& clip, typename N::Number gradient) {
  const auto scaled = n.mul(n.of(clip.factor), gradient);
  return n.smaller(n.of(clip.limit), n.larger(n.of(-clip.limit), scaled));
}

/// Calls `visitor` with an object of the rule's type.
template <class Visitor>
auto visit_rule(UpdateRule rule, const Visitor& visitor) {
  switch (rule) {
    case UpdateRule::kSgdMomentum:
      return visitor(SgdWithMomentum<false>());
    case UpdateRule::kSgdNesterov:
      return visitor(SgdWithMomentum<true>());
    case UpdateRule::kAdam:
      return visitor(Adam<false, false>());
    case UpdateRule::kAdamAmsgrad:
      return visitor(Adam<false, true>());
    case UpdateRule::kAdamW:
      return visitor(Adam<true, false>());
    case UpdateRule::kAdamWAmsgrad:
      return visitor(Adam<true, true>());
    case UpdateRule::kRmsprop:
      return visitor(Rmsprop<false>());
    case UpdateRule::kRmspropMomentum:
      return visitor(Rmsprop<true>());
    case UpdateRule::kLars:
      return visitor(Lars());
    case UpdateRule::kLamb:
      return visitor(Lamb());
    case UpdateRule::kSgd:
      break;
  }
  return visitor(Sgd());
}
