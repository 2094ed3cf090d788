// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job's optimiser and schedule at work: what both engines ask at every step, whatever the optimiser is.
#pragma once

#include "comm/reduce/bucket_plan.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "common/buffers.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "models/arena.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/optimizers/optimizers.hpp"

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

/// The averages of the weights that a job keeps, train.ema and train.swa, in buffers like the optimiser's. What is kept
/// beside the parameters, such as running statistics, is not averaged: an average goes with that of the weights.
class WeightAverages {
 public:
  WeightAverages(const Job& job, std::int64_t steps_per_epoch);

  std::size_t count() const { return names_.size(); }
  /// "ema", "swa"
  const std::vector<std::string>& names() const { return names_; }
  /// Of the i-th: what is added of its distance to the new weights. @param step  taken before this one
  float share(std::size_t i, std::int64_t step) const;
  /// Whether the i-th one is an average of anything after so many steps.
  bool exists(std::size_t i, std::int64_t steps) const;
  /// Of the i-th, where every step adds the same share, but the first one, which adds all: that share; or 0.
  float share_of_each_step(std::size_t i) const {
    return names_[i] == kEmaBuffer ? static_cast<float>(1 - ema_) : 0;
  }

 private:
  double ema_;
  std::int64_t first_end_;  ///< steps up to the first end of an epoch that counts
  std::int64_t steps_per_epoch_;
  std::vector<std::string> names_;
};

/// True if a rule that looks at no norms treats two ranges alike. A range like UpdateTensor{} has the step's numbers.
inline bool are_alike(const UpdateTensor& a, const UpdateTensor& b) {
  return a.decay == b.decay && a.rate == b.rate && a.moves == b.moves;
}

class WeightUpdate {
 public:
  /// @param steps_per_epoch  of the job on its data
  WeightUpdate(const Job& job, const ParameterLayout& layout, std::int64_t steps_per_epoch);

  UpdateRule rule() const { return rule_; }
  /// Of what the optimiser remembers, in the rule's order, and then of the averages of weights.
  const std::vector<std::string>& buffer_names() const { return names_; }
  /// How many of these are the rule's.
  std::size_t rule_buffers() const { return names_.size() - averages_.count(); }
  const WeightAverages& averages() const { return averages_; }
  /// Every tensor of the layout.
  std::span<const UpdateTensor> each() const { return each_; }
  /// The ranges of the arena that the rule tells apart: of neighbours that are treated alike, one.
  std::span<const UpdateTensor> tensors() const { return tensors_; }
  const GradientClip& clip() const { return clip_; }
  /// What the rule is told. @param step  optimiser steps taken before this one
  StepScalars scalars(std::int64_t step) const;

  double learning_rate(std::int64_t step) const { return schedule_.at(step).lr; }
  /// For people: "adam, learning rate 0.001, cosine over 9 epochs after 1 epoch of warm-up".
  std::string describe() const;
  /// @throws ConfigError  the warm-up is as long as the run, or longer
  void require_warmup_within_run(const Job& job) const;

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

/// Whether `*` in the pattern can stand for some characters, and `?` for one, so that it is the name.
bool matches_pattern(std::string_view pattern, std::string_view name);

/// @param layout  of the whole network
/// @throws ConfigError  a pattern of train.groups or train.freeze matches no tensor, or none that another does not take
///                      before it; or nothing is left to train
void require_patterns_that_match(const Job& job, const ParameterLayout& layout);

/// A named buffer of the optimiser, in arena order.
struct OptimizerBufferView {
  std::string name;
  std::span<float> values;
};

/// Buffers on the host, for a CPU to work on or for the way to and from a device. All zeros at the start.
class OptimizerBuffers {
 public:
  OptimizerBuffers(const std::vector<std::string>& names, std::size_t parameters);

  std::vector<OptimizerBufferView> views();
  std::size_t count() const { return names_.size(); }
  std::span<float> values(std::size_t i) { return values_[i].span(); }
  /// As cpu::update takes them.
  float* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> names_;
  std::vector<AlignedBuffer<float>> values_;
  std::vector<float*> pointers_;
};

/// The numbers that a checkpoint is of: the host's weights, what the optimiser remembers, units.
struct TrainedState {
  std::span<float> weights;
  std::vector<OptimizerBufferView> optimizer;
  GradientUnits& units;
};

/// The weights change places with one of the buffers; what is kept beside the parameters stays.
void exchange(const TrainedState& state, const std::string& buffer);

/// How many buffers a job's optimiser and its averages of weights have, for those who count memory.
std::size_t optimizer_buffers(const Job& job);

// The fingerprints of a training step: of each tensor's summed gradient, weights and what the optimiser
// remembers of it, all as they are between the reduction and the update. So what a row says is what the step was
// computed from, and what it came to.

/// Where each fingerprint stands in the row of a step: gradients of all tensors, weights of all (behind them
/// those that are only kept), then each of the optimiser's buffers.
struct FingerprintLayout {
  std::size_t trained = 0, kept = 0;  ///< tensors
  std::size_t buffers = 0;            ///< of the optimiser

  std::size_t slots() const { return trained * (2 + buffers) + kept; }
  std::size_t gradient(std::size_t tensor) const { return tensor; }
  /// @param tensor  a kept one's number follows those of the trained ones
  std::size_t weights(std::size_t tensor) const { return trained + tensor; }
  std::size_t optimizer(std::size_t buffer, std::size_t tensor) const {
    return trained * (2 + buffer) + kept + tensor;
  }
};

FingerprintLayout fingerprint_layout(const ParameterLayout& parameters, std::size_t buffers);

/// A tensor in the memory of this rank, which may hold a part of the network.
struct HeldTensor {
  std::size_t number = 0;  ///< in the network
  std::size_t first = 0;   ///< element, in the buffers of the whole network
  std::size_t local = 0;   ///< element, in the rank's own
  std::size_t size = 0;
};

/// Of all tensors, where a rank holds the whole network.
std::vector<HeldTensor> held_tensors(const ParameterLayout& parameters);

/// The row of a step before it: zeros for the gradients, and for what this rank does not hold.
std::vector<std::uint64_t> fingerprints_of_state(const FingerprintLayout& layout,
                                                 std::span<const HeldTensor> held, const TrainedState& state);

/// The norm of the whole network's gradient, from the sums of squares of the tensors that a rank has. Collective where
/// ranks have parts of the network.
using NormOfAll = std::function<double(const std::vector<double>& squares)>;

/// Of a rank that has all tensors.
inline double norm_of_all(const std::vector<double>& squares) {
  return norm_of(squares.data(), squares.size());
}

// What arenas on hosts and devices are made for.

/// The job's units as they are before the first step.
GradientUnits make_gradient_units(const ParameterLayout& layout, std::int64_t global_grains);

/// A whole network or a part of it. The references are borrowed while an arena is made.
struct ArenaPart {
  const Job& job;
  const ParameterLayout& network;  ///< of the whole network
  const ParameterLayout& layout;   ///< of the part
  std::vector<HeldTensor> held;    ///< the part's trained tensors in its order, then those that are only kept
  BucketPlan plan;                 ///< of the part
  std::int64_t steps_per_epoch = 0, global_grains = 0;
};

}  // namespace lockstep
