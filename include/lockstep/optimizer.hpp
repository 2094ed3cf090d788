// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the weights move, and how the learning rate changes: docs/optimizers.md has the rules, which are PyTorch's.
#pragma once

#include <lockstep/version.hpp>

#include <cstdint>
#include <string>

LOCKSTEP_BEGIN_NAMESPACE

/// Numbers that a kind does not have are not looked at. All kinds have these defaults; those of docs/optimizers.md
/// are a job file's.
struct Optimizer {
  std::string kind = "sgd";  ///< sgd, adam, adamw, rmsprop, lars, lion, lamb
  double lr = 0.02;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
};

enum class Momentum { plain, nesterov };
inline constexpr Momentum nesterov = Momentum::nesterov;

inline Optimizer sgd(double lr, double momentum = 0, Momentum form = Momentum::plain) {
  return {.kind = "sgd", .lr = lr, .momentum = momentum, .nesterov = form == nesterov};
}
inline Optimizer adam(double lr = 0.001) {
  return {.kind = "adam", .lr = lr};
}
inline Optimizer adamw(double lr = 0.001, double weight_decay = 0.01) {
  return {.kind = "adamw", .lr = lr, .weight_decay = weight_decay};
}

/// The learning rate of each step, from Optimizer::lr.
struct Schedule {
  std::string kind = "constant";   ///< constant, step, exponential, polynomial, cosine, one_cycle
  std::int64_t every = 0;          ///< step: epochs from one change to the next
  double gamma = 0.1;              ///< step, exponential: factor of a change
  double min_lr = 0;               ///< cosine: the last rate
  std::int64_t warmup_epochs = 0;  ///< the rate grows from a third of it to all of it
};

/// From lr to min_lr over all epochs after the warm-up.
inline Schedule cosine(std::int64_t warmup_epochs = 0, double min_lr = 0) {
  return {.kind = "cosine", .min_lr = min_lr, .warmup_epochs = warmup_epochs};
}
/// Times gamma after each `every` epochs.
inline Schedule step_decay(std::int64_t every, double gamma = 0.1) {
  return {.kind = "step", .every = every, .gamma = gamma};
}

LOCKSTEP_END_NAMESPACE
