// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Small tensors for kernel tests: random numbers from a seed, double copies, comparison that names the worst
/// element.
#pragma once

#include "common/buffers.hpp"
#include "kernels/numerics/random.hpp"
#include "kernels/optimizers/rule_steps.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::reference {

/// Normal numbers.
inline AlignedBuffer<float> random_tensor(std::size_t size, unsigned seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  AlignedBuffer<float> tensor(size);
  for (float& value : tensor.span()) value = normal(generator);
  return tensor;
}

inline std::vector<double> widen(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// |actual - expected| <= tolerance * (1 + |expected|) everywhere; NaN is never near.
inline ::testing::AssertionResult all_near(std::span<const float> actual, std::span<const double> expected,
                                           double tolerance) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure() << "sizes differ: " << actual.size() << " and " << expected.size();
  }
  double worst = 0;
  std::size_t worst_index = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]) / (1 + std::abs(expected[i]));
    if (error <= worst) continue;
    worst_index = i;
    worst = error;
    if (std::isnan(error)) break;
  }
  if (worst <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "worst at index " << worst_index << ": " << actual[worst_index] << " instead of "
         << expected[worst_index] << ", error " << worst << ", allowed " << tolerance;
}

/// Central differences of a function of many numbers: d f(x) / d x[i].
template <class Function>
std::vector<double> finite_differences(std::vector<double> x, const Function& f, double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = f(x);
    x[i] = at - step;
    gradient[i] = (above - f(x)) / (2 * step);
    x[i] = at;
  }
  return gradient;
}

// Sums in double precision, and how far a kernel may be from them.

/// Expected outputs of an op, and for each the sum of its |terms|: rounding errors scale with
/// it.
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
  return fmt::format("worst index {} of {}: expected {}, got {}, which is {} times the tolerance", index,
                     expected.value.size(), expected.value[index], actual[index], worst);
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
  return {fmt::format("lr {}, momentum {}, decay {}{}", p.learning_rate, p.momentum, p.weight_decay,
                      p.nesterov ? ", Nesterov" : ""),
          rule,
          pack_scalars(SgdStep{.decay = p.weight_decay, .rate = p.learning_rate, .momentum = p.momentum})};
}

inline std::vector<RuleCase> rule_cases() {
  const AdamStep adam{.decay = 0.01F,
                      .rate = 0.05F,
                      .one_minus_beta1 = 0.1F,
                      .beta2 = 0.99F,
                      .one_minus_beta2 = 0.01F,
                      .correction1 = 1.9F,
                      .correction2 = 1.7F,
                      .eps = 1e-6F};
  const RmspropStep rmsprop{
      .decay = 0.01F, .rate = 0.05F, .alpha = 0.9F, .one_minus_alpha = 0.1F, .eps = 1e-6F, .momentum = 0.8F};
  const LarsStep lars{.decay = 0.01F, .rate = 2, .momentum = 0.9F, .trust = 0.01F, .eps = 1e-8F};
  const LionStep lion{.decay = 0.001F,
                      .rate = 0.01F,
                      .beta1 = 0.9F,
                      .one_minus_beta1 = 0.1F,
                      .beta2 = 0.99F,
                      .one_minus_beta2 = 0.01F};
  return {sgd_case({0.05F, 0, 0.01F, false}),
          sgd_case({0.05F, 0.9F, 0, false}),
          sgd_case({0.05F, 0.9F, 0.01F, false}),
          sgd_case({0.05F, 0.9F, 0.01F, true}),
          {"adam", UpdateRule::kAdam, pack_scalars(adam)},
          {"adam, amsgrad", UpdateRule::kAdamAmsgrad, pack_scalars(adam)},
          {"adamw", UpdateRule::kAdamW, pack_scalars(adam)},
          {"adamw, amsgrad", UpdateRule::kAdamWAmsgrad, pack_scalars(adam)},
          {"rmsprop", UpdateRule::kRmsprop, pack_scalars(rmsprop)},
          {"rmsprop, momentum", UpdateRule::kRmspropMomentum, pack_scalars(rmsprop)},
          {"lars", UpdateRule::kLars, pack_scalars(lars)},
          {"lamb", UpdateRule::kLamb, pack_scalars(adam)},
          {"lion", UpdateRule::kLion, pack_scalars(lion)}};
}

}  // namespace lockstep
