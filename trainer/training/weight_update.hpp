// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An optimiser and its schedule at work: what CPUs and GPUs ask at every step, whatever the optimiser is.
#pragma once

#include "kernels/optimizers/update_rule.hpp"
#include "models/arena.hpp"
#include "trainer/training/optimizers/optimizers.hpp"
#include "trainer/training/optimizers/schedule.hpp"
#include "trainer/training/options.hpp"
#include "trainer/training/weight_averages.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// How the mean gradient is clipped before the optimiser sees it: one of the two at most.
struct GradientClip {
  double norm = 0;   ///< the largest norm of all tensors together; 0: any
  double value = 0;  ///< the largest magnitude of an element; 0: any

  bool is_given() const { return norm > 0 || value > 0; }
  /// @param factor  that the norm asks for
  ClipStep step(float factor) const {
    return {factor, value > 0 ? static_cast<float>(value) : ClipStep().limit};
  }
};

/// True if a rule that looks at no norms treats two ranges alike. A range like UpdateTensor{} has the step's numbers.
inline bool are_alike(const UpdateTensor& a, const UpdateTensor& b) {
  return a.decay == b.decay && a.rate == b.rate && a.moves == b.moves;
}

class WeightUpdate {
 public:
  /// @param steps_per_epoch  of the training set
  WeightUpdate(const TrainingOptions& options, const ParameterLayout& layout, std::int64_t steps_per_epoch);

  UpdateRule rule() const { return rule_; }
  /// Names of the optimiser state, in the rule's order, and then of the averages of weights.
  const std::vector<std::string>& buffer_names() const { return names_; }
  /// How many of these are the rule's.
  std::size_t rule_buffers() const { return names_.size() - averages_.count(); }
  const WeightAverages& averages() const { return averages_; }
  /// Every tensor of the layout.
  std::span<const UpdateTensor> each() const { return each_; }
  /// The ranges of the arena that the rule treats differently: of neighbours that are treated alike, one.
  std::span<const UpdateTensor> tensors() const { return tensors_; }
  /// True if that is one range with the step's numbers, and the rule looks at no norms.
  bool treats_all_alike() const {
    return tensors_.size() == 1 && are_alike(tensors_[0], UpdateTensor{}) && !uses_norms(rule_);
  }
  const GradientClip& clip() const { return clip_; }
  /// Values for the rule. @param step  optimiser steps taken before this one
  StepScalars scalars(std::int64_t step) const;

  double learning_rate(std::int64_t step) const { return schedule_.at(step).lr; }
  /// For people: "adam, learning rate 0.001, cosine over 9 epochs after 1 epoch of warm-up".
  std::string describe() const;
  /// @throws OptionError  the warm-up is as long as the run, or longer
  void require_warmup_within_run() const;

 private:
  std::string scaling_;
  OptimizerSection section_;
  const OptimizerKind& optimizer_;
  UpdateRule rule_;
  WeightAverages averages_;
  std::vector<std::string> names_;
  std::vector<UpdateTensor> each_, tensors_;
  GradientClip clip_;
  double lr_;
  RunSpan run_;
  RateSchedule schedule_;
};

/// True if the pattern matches the name: `*` matches some characters, and `?` for one.
bool matches_pattern(std::string_view pattern, std::string_view name);

/// @param layout  of the whole network
/// @throws OptionError  a pattern of train.groups or train.freeze matches no tensor, or none that another does not take
///                      before it; or nothing is left to train
void require_patterns_that_match(const UpdateOptions& options, const ParameterLayout& layout);

/// The norm of the whole network's gradient, from the sums of squares of the tensors that a rank has. Collective where
/// ranks have parts of the network.
using NormOfAll = std::function<double(const std::vector<double>& squares)>;

/// Norm when this rank holds every tensor.
inline double norm_of_all(const std::vector<double>& squares) {
  return norm_of(squares.data(), squares.size());
}

}  // namespace lockstep
