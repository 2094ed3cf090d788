// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Computes the stages of one rank of a pipeline, and holds what they train. It runs on CPU cores
/// (cpu_stage_engine.cpp) or on a GPU (device_stage_engine.cpp).
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "kernels/device.hpp"
#include "models/arena.hpp"
#include "models/network.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/parallel/held_layout.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/step_observer.hpp"
#include "trainer/training/training_step.hpp"
#include "trainer/training/weight_update.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

/// A micro-batch of one round of passes.
struct StageGrain {
  std::span<const std::int32_t> indices;      ///< samples, as indices in the data set
  PassKey key = {};                           ///< in training
  std::int64_t epoch = 0;                     ///< in training
  std::span<const SampleMix> mixes = {};      ///< one a sample; empty: none is mixed
  const MixedLabel* second_labels = nullptr;  ///< one a sample; null: none is mixed
  int samples() const { return static_cast<int>(indices.size()); }
};

/// A micro-batch at a stage.
struct StageVisit {
  int stage = 0;
  int number = 0;  ///< the micro-batch's, counted from 0 in the round
  const StageGrain& grain;
  bool training = false;             ///< on the training set; otherwise evaluation
  const StageGrain* next = nullptr;  ///< the micro-batch after it; null: there is none in the round
};

/// Result of a rank's part of a step.
struct StageSums {
  StepCounters counters;  ///< counted from its losses
  /// For each tensor held; over all ranks they add up to what was refused.
  std::vector<TensorRefusals> refusals;
};

/// Parts that an engine is made of; borrowed.
struct StageEngineParts {
  const TrainingSetup& setup;
  const DeviceSetup& device;
  const StagePlan& plan;
  int rank = 0;  ///< in its pipeline
  const HeldLayout& held;
  const DistributedSampler& sampler;
  Communicator& comm;      ///< all ranks
  Communicator& replicas;  ///< those with the same stages
  UnreadSamples& unread;   ///< the rank's; what is computed in their place counts for nothing
  StepObservers& observers;
};

/// Passes come in the order of a schedule. Micro-batches of a stage come and go in order, so that those in flight are
/// neighbours. Messages are valid until the next pass. Not thread-safe.
class StageEngine {
 public:
  virtual ~StageEngine() = default;

  /// Stream on which passes make and read messages, if these are on the device. Null: they are in host memory.
  virtual Stream* message_stream() { return nullptr; }
  /// Sums of the squares of the last step's mean gradient, for each tensor held; empty where it is not kept.
  virtual std::vector<double> gradient_squares() { return {}; }
  /// Sets work to do, again and again, while this rank waits for a device; it must not block.
  virtual void while_waiting(const std::function<void()>& /*meanwhile*/) {}

  /// Memory for so many micro-batches of a stage of this rank in flight.
  virtual void make_room(int stage, int micro_batches) = 0;
  /// Memory for the input of the pass to come; not at the network's first stage, which loads its samples.
  virtual std::span<float> input(const StageVisit& visit) = 0;
  /// @returns the output; nothing at the network's last stage, which takes the loss
  virtual std::span<const float> forward(const StageVisit& visit) = 0;
  /// Memory for the gradient of the output; not at the network's last stage.
  virtual std::span<float> output_gradient(const StageVisit& visit) = 0;
  /// After forward: adds the gradients of the weights to the step's sums.
  /// @returns the gradient of the input; nothing if it is not wanted
  virtual std::span<const float> backward(const StageVisit& visit) = 0;

  // A step: begin_step(), passes, reduce(); then its result; then update(), unless it is to be repeated or
  // fails.

  /// @param units   of the whole network's tensors
  /// @param grains  of this rank's pipeline
  virtual void begin_step(const StepPosition& position, const GradientUnits& units, int grains) = 0;
  /// The gradients of all replicas are added up. Collective among them.
  /// @throws SumsDifferError  as GradientReducer::wait()
  virtual StageSums reduce() = 0;
  /// As ParallelStrategy::require_sight(), of the outputs of this rank's last stage, and of sums on their way where
  /// parameters are held.
  virtual void require_sight(Sight /*part*/) const {}

  // For replays, where there are some, between reduce() and update(): begin_replay(), passes, end_replay().

  /// Fingerprints of the reduced step for each tensor held, as GradientReducer::Sums::own_fingerprints().
  virtual SumFingerprints own_fingerprints() = 0;
  /// Passes over another pipeline's micro-batches of this step follow, and add to sums of their own.
  virtual void begin_replay(int grains) = 0;
  /// Fingerprints for each tensor held. The step's own result is as it was.
  virtual SumFingerprints end_replay() = 0;
  /// Needs replicas and exact sums: as GradientReducer::Sums::fingerprint_that_left(); 0 without parameters.
  virtual std::uint64_t fingerprint_that_left() = 0;
  /// Largest sums for each tensor held, over the replicas: GradientUnits::refine().
  virtual std::vector<double> largest_sums() = 0;
  /// Moves the weights along the mean gradient.
  /// @param samples  of the step, over all ranks
  /// @param rows     where fingerprints are kept and the rank has parameters, the step's row is appended to them
  /// @param norm     collective: asked once by all ranks where the gradient is clipped by its norm
  virtual void update(const StepPosition& position, std::int64_t samples, std::vector<std::uint64_t>& rows,
                      const NormOfAll& norm) = 0;

  /// Forward passes follow, whose losses evaluated() tells.
  void begin_evaluation(EvaluatedPart part) {
    evaluated_part_ = part;
    forget_evaluation();
  }
  virtual StepCounters evaluated() = 0;

  /// State that a rank with parameters trains, in host memory, in the order of held_layout().
  virtual TrainedState state() = 0;
  /// From where it is trained into host memory, and back.
  virtual void fetch_state() {}
  virtual void commit_state() {}

 protected:
  /// @param columns  of activations come in multiples of these
  StageEngine(const StageEngineParts& parts, int columns) : parts_(parts), multiple_(columns) {}

  const StagePlan& plan() const { return parts_.plan; }
  const HeldLayout& held() const { return parts_.held; }
  const Network& network() const { return parts_.setup.network; }
  const NetworkPart& part(int stage) const { return at(plan().stages, stage).part; }
  bool clips_by_norm() const { return parts_.setup.options.update.clip_norm > 0; }
  int columns_for(int samples) const { return (samples + multiple_ - 1) / multiple_ * multiple_; }
  /// Numbers of a sample before a stage and after it.
  std::size_t input_features(int stage) const;
  std::size_t output_features(int stage) const;
  /// Numbers for all columns of a micro-batch.
  std::size_t input_size(const StageVisit& visit) const {
    return input_features(visit.stage) * static_cast<std::size_t>(columns_for(visit.grain.samples()));
  }
  std::size_t output_size(const StageVisit& visit) const {
    return output_features(visit.stage) * static_cast<std::size_t>(columns_for(visit.grain.samples()));
  }
  /// The micro-batch's execution among those of its stage: those in flight are neighbours.
  template <typename OfStages>
  static auto& slot_of(OfStages& stages, const StageVisit& visit) {
    auto& slots = at(stages, visit.stage);
    return slots[static_cast<std::size_t>(visit.number) % slots.size()];
  }
  virtual void forget_evaluation() = 0;
  const Dataset& data_of(const StageVisit& visit) const;
  void copy_labels(const StageVisit& visit, std::span<std::int32_t> labels) const;
  /// The rank's own arena.
  ArenaPart arena_part() const;

  const StageEngineParts parts_;
  const int multiple_;
  EvaluatedPart evaluated_part_ = EvaluatedPart::kTest;  ///< on which forward passes go that are no training
};

/// Collective.
std::unique_ptr<StageEngine> make_cpu_stage_engine(const StageEngineParts& parts);
std::unique_ptr<StageEngine> make_device_stage_engine(const StageEngineParts& parts);

}  // namespace lockstep
