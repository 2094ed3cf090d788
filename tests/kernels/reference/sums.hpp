// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums in double precision, and how far a kernel may be from them.
#pragma once

#include "kernels/numerics/random.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::reference {

/// What an op should give, and for each output the sum of the |terms| it consists of: rounding errors scale
/// with it.
struct Sums {
  std::vector<double> value, magnitude;

  explicit Sums(std::size_t size = 0) : value(size), magnitude(size) {}
  void add(std::size_t i, double term) {
    value[i] += term;
    magnitude[i] += std::abs(term);
  }
};

/// Uniform in [-1, 1), exactly representable as float; stream `use` of `seed`.
inline std::vector<double> random_numbers(std::uint64_t seed, std::uint32_t use, std::size_t size) {
  std::vector<double> numbers(size);
  for (std::size_t i = 0; i < size; ++i) {
    const Philox4 bits = philox(seed, {{static_cast<std::uint32_t>(i / 4), use, 0, 0}});
    numbers[i] = 2.0 * static_cast<double>(uniform01(bits.value[i % 4])) - 1.0;
  }
  return numbers;
}

/// Empty if each |actual - expected| <= 1e-5 * magnitude; else the worst place, for the failure message.
inline std::string worst_difference(const Sums& expected, std::span<const float> actual) {
  constexpr double kTolerance = 1e-5;
  double worst = 0;
  std::size_t index = 0;
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    const double error = std::abs(expected.value[i] - static_cast<double>(actual[i]));
    const double allowed = kTolerance * expected.magnitude[i];
    double ratio = error == 0 ? 0 : error / allowed;
    if (std::isnan(ratio)) ratio = INFINITY;
    if (ratio > worst) {
      worst = ratio;
      index = i;
    }
  }
  if (worst <= 1) return {};
  std::ostringstream message;
  message << "worst index " << index << " of " << expected.value.size() << ": expected "
          << expected.value[index] << ", got " << actual[index] << ", which is " << worst
          << " times the tolerance";
  return message.str();
}

/// The loss whose gradient with respect to y is dy.
inline double weighted_sum(const std::vector<double>& dy, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
  return sum;
}

/// The gradient of a function that is linear in x, for which differences of any step are exact.
template <class F>
std::vector<double> linear_differences(const std::vector<double>& x, const F& f) {
  return finite_differences(x, f, 0.5);
}

inline double largest_error(const Sums& sums, const std::vector<double>& expected) {
  if (sums.value.size() != expected.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(sums.value[i] - expected[i]));
  }
  return largest;
}

}  // namespace lockstep::reference

namespace lockstep {

// Every update rule with numbers that exercise it, for tests that hold of all rules.

struct RuleCase {
  std::string name;
  UpdateRule rule;
  StepScalars scalars;
};

struct SgdParams {
  float learning_rate, momentum, weight_decay;
  bool nesterov;
};

inline RuleCase sgd_case(const SgdParams& p) {
  const UpdateRule rule = p.momentum == 0 ? UpdateRule::kSgd
                          : p.nesterov    ? UpdateRule::kSgdNesterov
                                          : UpdateRule::kSgdMomentum;
  return {"lr " + std::to_string(p.learning_rate) + ", momentum " + std::to_string(p.momentum) + ", decay " +
              std::to_string(p.weight_decay) + (p.nesterov ? ", Nesterov" : ""),
          rule,
          pack_scalars(SgdStep{.decay = p.weight_decay, .rate = p.learning_rate, .momentum = p.momentum})};
}

inline std::vector<RuleCase> rule_cases() {
  const AdamStep adam{.decay = 0.01F,
                      .rate = 0.05F,
                      .one_minus_beta1 = 0.1F,
                      .beta2 = 0.99F,
                      .one_minus_beta2 = 0.01F,
                      .correction2 = 1.7F,
                      .eps = 1e-6F};
  const RmspropStep rmsprop{
      .decay = 0.01F, .rate = 0.05F, .alpha = 0.9F, .one_minus_alpha = 0.1F, .eps = 1e-6F, .momentum = 0.8F};
  const LarsStep lars{.decay = 0.01F, .rate = 2, .momentum = 0.9F, .trust = 0.01F, .eps = 1e-8F};
  return {sgd_case({0.05F, 0, 0.01F, false}),
          sgd_case({0.05F, 0.9F, 0, false}),
          sgd_case({0.05F, 0.9F, 0.01F, false}),
          sgd_case({0.05F, 0.9F, 0.01F, true}),
          {"adam", UpdateRule::kAdam, pack_scalars(adam)},
          {"adamw", UpdateRule::kAdamW, pack_scalars(adam)},
          {"rmsprop", UpdateRule::kRmsprop, pack_scalars(rmsprop)},
          {"rmsprop, momentum", UpdateRule::kRmspropMomentum, pack_scalars(rmsprop)},
          {"lars", UpdateRule::kLars, pack_scalars(lars)}};
}

}  // namespace lockstep
