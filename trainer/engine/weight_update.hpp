// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job's optimiser and schedule at work: what both engines ask at every step, whatever the optimiser is.
#pragma once

#include "comm/reduce/gradient_reducer.hpp"
#include "common/buffers.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "models/arena.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/optimizers/optimizer.hpp"
#include "trainer/config/optimizers/schedule.hpp"

#include <cstddef>
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
  std::string scaling_;
  OptimizerSection section_;
  const OptimizerKind& optimizer_;
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
  /// As cpu::update takes them.
  float* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> names_;
  std::vector<AlignedBuffer<float>> values_;
  std::vector<float*> pointers_;
};

/// How many buffers a job's optimiser has, for those who count memory.
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

/// The fingerprints of host memory. Borrows nothing.
class HostFingerprints {
 public:
  /// @param layout  of the whole network
  /// @param held    the trained tensors in the reducer's order, then those that are kept
  HostFingerprints(const FingerprintLayout& layout, std::vector<HeldTensor> held)
      : layout_(layout), held_(std::move(held)) {}

  using Row = std::span<std::uint64_t>;
  /// A row of zeros, as it stays for tensors that this rank does not hold. Valid until `rows` grows.
  Row append_empty(std::vector<std::uint64_t>& rows) const;
  /// @param sums  of a held tensor, from element `first` of the rank's own on
  void add_sums(Row row, std::size_t tensor, std::size_t first, std::span<const std::int64_t> sums) const;
  /// What the optimiser and the weights have in [first, first + size) of the rank's own.
  void add_state(Row row, std::size_t first, std::size_t size, std::span<const float> weights,
                 OptimizerBuffers& buffers) const;

 private:
  FingerprintLayout layout_;
  std::vector<HeldTensor> held_;
};

}  // namespace lockstep
