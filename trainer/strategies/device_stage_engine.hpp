// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The stages of one rank on a GPU.
#pragma once

#include "models/device_execution.hpp"
#include "trainer/engine/device_arena.hpp"
#include "trainer/strategies/stage_engine.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

/// The same operations on grains as a GPU that has the whole network, and so the same bits. Messages between stages
/// are on the GPU where they stay there (messages_stay_on_device), otherwise in pinned host memory. Each pass ends
/// with a wait for the GPU: the host says when what it made is sent, and how long it took.
class DeviceStageEngine final : public StageEngine {
 public:
  explicit DeviceStageEngine(const StageEngineParts& parts);

  Stream* message_stream() override { return direct_ ? main_.get() : nullptr; }
  void while_waiting(const std::function<void()>& meanwhile) override { meanwhile_ = meanwhile; }

  void make_room(int stage, int micro_batches) override;
  std::span<float> input(const StageVisit& visit) override;
  std::span<const float> forward(const StageVisit& visit) override;
  std::span<float> output_gradient(const StageVisit& visit) override;
  std::span<const float> backward(const StageVisit& visit) override;

  void begin_step(const StepPosition& position, const GradientUnits& units, int grains) override;
  void reduce() override;
  StepCounters counters() override;
  std::vector<TensorRefusals> refusals() override;
  std::vector<double> largest_sums() override;
  void update(const StepPosition& position, std::int64_t samples, std::vector<std::uint64_t>& rows) override;

  void begin_evaluation() override;
  EvaluationSums evaluated() override;

  std::span<float> weights() override { return weights_.span(); }
  std::vector<OptimizerBufferView> optimizer_buffers() override { return buffers_.views(); }
  void fetch_state() override;
  void commit_state() override;

 private:
  using Slots = std::vector<DeviceExecution>;

  const NetworkPart& part(int stage) const { return plan_.stages[static_cast<std::size_t>(stage)].part; }
  DeviceExecution& slot(const StageVisit& visit);
  std::size_t input_size(const StageVisit& visit) const;
  std::size_t output_size(const StageVisit& visit) const;
  /// Of the largest message of this rank's stages that goes through the host.
  std::size_t most_numbers() const;
  /// From where it arrived to where a pass reads it.
  void queue_arrival(float* to, std::size_t count);
  /// From where a pass made it to where it is sent.
  std::span<const float> queue_shutdown(const float* from, std::size_t count);
  const float* weights_of(int stage);
  DeviceGradient gradient_of(int stage);
  void use_units(const GradientUnits& whole);
  DevicePass pass_of(const StageVisit& visit) const;
  void queue_samples(const StageVisit& visit, DeviceExecution& execution);
  void queue_loss(const StageVisit& visit, DeviceExecution& execution);
  /// With the deadline of the ranks.
  void wait_for_stream(std::string_view what);

  std::shared_ptr<Gpu> gpu_;  ///< as trainer/engine/device_step_engine.hpp keeps it
  const Network& network_;
  const TrainTestData& data_;
  const StagePlan& plan_;
  std::vector<int> stages_;  ///< of this rank
  const HeldLayout& held_;
  bool direct_;  ///< messages are on the GPU
  Communicator& comm_;
  std::function<void()> meanwhile_ = [] {};
  int grain_;
  std::uint64_t seed_;
  double narrow_limit_, evaluation_limit_;       ///< of losses, in training and evaluation
  std::unique_ptr<DeviceAllReduce> all_reduce_;  ///< over the replicas; null: there is one
  std::unique_ptr<Stream> main_, side_;
  std::unique_ptr<Event> done_;
  std::optional<DeviceData> train_, test_;  ///< where the rank has the first stage
  WeightUpdate update_;
  AlignedBuffer<float> weights_;  ///< the host's
  OptimizerBuffers buffers_;      ///< the host's
  DeviceState state_;
  std::optional<DeviceArena> arena_;  ///< none: the rank's stages have no parameters
  std::size_t slots_of_row_ = 0;      ///< of the trail; 0: the job keeps none
  std::vector<Slots> slots_;          ///< of each stage of the network; none of others'
  PinnedBuffer<float> arriving_, leaving_;
  PinnedBuffer<std::int32_t> host_indices_, host_labels_;  ///< of a grain
  DeviceBuffer<std::int32_t> indices_;
  DeviceBuffer<std::int64_t> counters_;  ///< of losses
  PinnedBuffer<std::int64_t> host_counters_;
};

}  // namespace lockstep
