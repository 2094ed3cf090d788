// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training steps on a GPU: series of steps that the host only launches.
#pragma once

#include "trainer/device/device_evaluator.hpp"
#include "trainer/device/device_step.hpp"
#include "trainer/device/step_graphs.hpp"
#include "trainer/step_engine.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

class DeviceStepEngine final : public StepEngine {
 public:
  DeviceStepEngine(const Job& job, const JobSetup& setup, Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t longest_series() const override { return longest_series_; }
  Evaluation evaluate(const LeaveEvaluation& leave) override;

  void fetch_state() override;
  void commit_state() override;
  std::span<float> weights() override { return weights_.span(); }
  std::span<float> momentum() override { return momentum_.span(); }
  const DistributedSampler& sampler() const override { return sampler_; }
  StepTimes times() const override { return times_; }
  void reset_times() override { times_ = {}; }

 private:
  BatchShare share_of(std::int64_t step_in_epoch) const;
  void queue_steps(std::int64_t first, std::int64_t count);
  void wait_for_state();

  /// Kept by the engine: its graphs hold all-reduces, and must be gone before what makes those (NCCL's abort
  /// waits for them), in whatever order the engine and the setup go.
  std::shared_ptr<Gpu> gpu_;
  Communicator& comm_;
  DistributedSampler sampler_;
  std::int64_t longest_series_;
  DeviceStep step_;
  StepGraphs graphs_;
  DeviceEvaluator evaluator_;
  std::unique_ptr<Event> series_done_;
  AlignedBuffer<float> weights_, momentum_;  ///< the host's
  std::int64_t epoch_on_device_ = -1;
  StepTimes times_;
};

}  // namespace lockstep
