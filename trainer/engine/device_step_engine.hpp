// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training steps on a GPU: series of steps that the host only launches.
#pragma once

#include "comm/communicator.hpp"
#include "models/device_execution.hpp"
#include "trainer/engine/device_arena.hpp"
#include "trainer/engine/device_step.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/engine/step_engine.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

// Loss and accuracy over a data set on a GPU, spread over all ranks, every sample counted exactly once.

class DeviceEvaluator {
 public:
  /// Puts the set on the device. Borrows all references; at least one sample.
  DeviceEvaluator(const Network& network, const Gpu& gpu, Stream& stream, const Dataset& data);

  /// Each rank takes its share of the set. Every sample's loss becomes an integer before it is added, so the
  /// result has the same bits on any number of ranks. Collective.
  /// @param weights  device memory, arena order
  /// @param leave    asked before each batch is queued whether to give up; all ranks then hear of it. At most two
  ///                 batches are queued at a time, so that it is asked while they run
  Evaluation evaluate(Communicator& comm, const float* weights, const LeaveEvaluation& leave = never_leave);

 private:
  bool queue_share(Communicator& comm, const float* weights, const LeaveEvaluation& leave);
  void queue_batch(std::int64_t first, int batch, const float* weights);

  const Gpu& gpu_;
  Stream& stream_;
  int classes_;
  DeviceData data_;
  DeviceExecution execution_;
  DeviceBuffer<std::int64_t> counters_;
  PinnedBuffer<std::int64_t> host_counters_;
  std::array<std::unique_ptr<Event>, 2> ended_;  ///< of the last two batches
};

class DeviceStepEngine final : public StepEngine {
 public:
  DeviceStepEngine(const Job& job, const JobSetup& setup, Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t longest_series() const override { return series_.steps(); }
  Evaluation evaluate(const LeaveEvaluation& leave) override;

  void fetch_state() override;
  void commit_state() override;
  std::span<float> weights() override { return weights_.span(); }
  std::vector<OptimizerBufferView> optimizer_buffers() override { return buffers_.views(); }
  GradientUnits& gradient_units() override { return step_.arena().units(); }
  const WeightUpdate& weight_update() const override { return update_; }
  const DistributedSampler& sampler() const override { return sampler_; }
  StepTimes times() const override { return times_; }
  void reset_times() override { times_ = {}; }

 private:
  BatchShare share_of(std::int64_t step_in_epoch) const;
  void go_to_epoch(std::int64_t epoch);
  void queue_state(const StepPosition& position, std::int64_t count, bool stop_requested);
  /// How many of the next steps need not be watched.
  std::int64_t unseen_steps(const StepPosition& position, std::int64_t most) const;
  /// Steps that the host does not look at before the last of them is done; fewer if one refuses a number.
  void run_unseen(const StepPosition& position, std::int64_t count, bool stop_requested, StepSeries& series);
  /// One step that the host looks at between reduction and update.
  void run_watched(const StepPosition& position, bool stop_requested, StepSeries& series);
  StepTrial::Outcome reduce(const StepPosition& position, StepTrial& trial, StepTotals& totals);
  std::vector<TensorRefusals> refusals_of_all();
  void use_units();
  void queue_steps(std::int64_t first, std::int64_t count);
  void wait_for_stream();

  /// Kept by the engine: its graphs hold all-reduces, and must be gone before what makes those (NCCL's abort
  /// waits for them), in whatever order the engine and the setup go.
  std::shared_ptr<Gpu> gpu_;
  Communicator& comm_;
  DistributedSampler sampler_;
  std::int64_t longest_series_;  ///< however short steps are
  SeriesLength series_;
  WeightUpdate update_;
  DeviceStep step_;
  StepGraphs graphs_;
  DeviceEvaluator evaluator_;
  std::unique_ptr<Event> series_done_;
  AlignedBuffer<float> weights_;  ///< the host's
  OptimizerBuffers buffers_;      ///< the host's
  std::int64_t epoch_on_device_ = -1;
  StepTimes times_;
};

}  // namespace lockstep
