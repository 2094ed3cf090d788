// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job's optimiser and schedule at work: what both engines ask at every step, whatever the optimiser is.
#pragma once

#include "common/aligned_buffer.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "models/arena.hpp"
#include "trainer/config/job.hpp"
#include "trainer/optimizers/optimizer.hpp"
#include "trainer/optimizers/schedule.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

class WeightUpdate {
 public:
  /// @param steps_per_epoch  of the job on its data
  WeightUpdate(const Job& job, const ParameterLayout& layout, std::int64_t steps_per_epoch);

  UpdateRule rule() const { return rule_; }
  /// Of what the optimiser remembers, in the rule's order.
  const std::vector<std::string>& buffer_names() const { return names_; }
  /// The ranges of the arena that the rule tells apart.
  std::span<const UpdateTensor> tensors() const { return tensors_; }
  /// What the rule is told. @param step  optimiser steps taken before this one
  StepScalars scalars(std::int64_t step) const;

  double learning_rate(std::int64_t step) const { return schedule_.at(step).lr; }
  /// For people: "adam, learning rate 0.001, cosine over 9 epochs after 1 epoch of warm-up".
  std::string describe() const;
  /// @throws ConfigError  the warm-up is as long as the run, or longer
  void require_warmup_within_run(const Job& job) const;

 private:
  std::string kind_, scaling_;
  bool has_momentum_;  ///< true for optimisers without that key, too: Adam's betas[0] is scheduled
  std::unique_ptr<Optimizer> optimizer_;
  UpdateRule rule_;
  std::vector<std::string> names_;
  std::vector<UpdateTensor> tensors_;
  double lr_;
  RunSpan run_;
  RateSchedule schedule_;
};

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
  /// As Ops::update takes them.
  float* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> names_;
  std::vector<AlignedBuffer<float>> values_;
  std::vector<float*> pointers_;
};

/// How many buffers a job's optimiser has, for those who count memory.
std::size_t optimizer_buffers(const Job& job);

}  // namespace lockstep
