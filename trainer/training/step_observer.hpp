// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Observers of a rank's steps. They look at what a step makes, and may end the run; none is part of it, and without
/// them a step costs nothing. Checks of sums and of other ranks, proofs and injected faults are observers.
#pragma once

#include "comm/reduce/sum_check.hpp"
#include "trainer/training/training_step.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {

/// In the order of a step; each does nothing unless it is overridden.
class StepObserver : public SumObserver {
 public:
  /// True: the host is to look at that step before its update. On a GPU others may pass unseen, in a graph.
  /// The same on all ranks.
  virtual bool looks_at(std::int64_t /*global_step*/) const { return false; }
  /// A pipeline's message from another rank's stage, as it arrived in training. It may be changed.
  virtual void message_arrived(std::span<float> /*message*/) {}
  /// Outputs of a grain in training, [class][lane]; of a stage, its own. They may be changed. On any thread.
  virtual void outputs_computed(std::span<float> /*outputs*/, int /*lanes*/) {}
  /// Sums have changed on their way: before the error goes on. Collective, of the ranks that throw it.
  /// @param step  counted from 1
  virtual void sums_differ(const SumsDifferError& /*error*/, std::int64_t /*step*/) {}
  /// The sums will move the weights. On a GPU, only of steps that some observer looks at. Collective.
  virtual void before_update(ReducedStep& /*step*/) {}
};

/// Parts of a step that a rank may be unable to show.
enum class Sight { kSamples, kState, kMessages, kOutputs, kSums, kSumsOnTheirWay };

/// All observers of a rank, as one.
class StepObservers final : public StepObserver {
 public:
  void add(std::shared_ptr<StepObserver> observer) { all_.push_back(std::move(observer)); }

  bool sees_sums() const override {
    return std::ranges::any_of(all_, [](const auto& one) { return one->sees_sums(); });
  }
  bool looks_at(std::int64_t global_step) const override {
    return std::ranges::any_of(all_, [&](const auto& one) { return one->looks_at(global_step); });
  }
  void sums_leave(const ShownSums& sums) override { tell(&StepObserver::sums_leave, sums); }
  void sums_arrived(const ShownSums& sums) override { tell(&StepObserver::sums_arrived, sums); }
  void message_arrived(std::span<float> message) override { tell(&StepObserver::message_arrived, message); }
  void outputs_computed(std::span<float> outputs, int lanes) override {
    tell(&StepObserver::outputs_computed, outputs, lanes);
  }
  void sums_differ(const SumsDifferError& error, std::int64_t step) override {
    tell(&StepObserver::sums_differ, error, step);
  }
  void before_update(ReducedStep& step) override { tell(&StepObserver::before_update, step); }

 private:
  template <typename Event, typename... Facts>
  void tell(Event event, Facts&&... facts) {
    for (const auto& one : all_) ((*one).*event)(facts...);
  }

  std::vector<std::shared_ptr<StepObserver>> all_;
};

}  // namespace lockstep
