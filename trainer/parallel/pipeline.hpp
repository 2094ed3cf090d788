// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `pipeline`: each rank has some layers of the network, and grains pass through them one after the
/// other. The bits are those of one rank.
///
/// Also names the rank that has a bad link: it compares sums among replicas and messages between stages.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/sum_check.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "models/network.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/parallel/stage_engine.hpp"
#include "trainer/parallel/stage_links.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/parallel/stage_worker.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/training/training_step.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// A grain's gradient is rounded once and added as integers, wherever its layers ran. So stages leave no trace,
/// as ranks leave none. Whether a step may move the weights depends on all tensors, and all ranks decide it
/// alike, from numbers summed over all of them.
class Pipeline final : public ParallelStrategy {
 public:
  /// Borrows the setups, which last as long.
  Pipeline(const PipelineOptions& options, const TrainingSetup& setup, const DeviceSetup& device,
           Communicator& comm)
      : Pipeline(options, setup, device, comm, plan_stages(options, setup.network, comm.size())) {}

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) override;

  TrainedState whole_state() override;
  void distribute() override;
  void collect() override;
  void visit_own_state(const StateVisit& visit) override;
  StepMeasures measures() override;
  /// All but the sums after their reduction; those on their way where there are replicas.
  void require_sight(Sight part) const override;
  StrategyDescription describe() const override;
  /// The share of the ranks' time in steps in which they computed nothing, beside the formulas. Also what was sent; and
  /// of each stage what it holds and takes. On rank 0, and nothing if no step was taken.
  StrategySummary summary() override;

 private:
  Pipeline(const PipelineOptions& options, const TrainingSetup& setup, const DeviceSetup& device,
           Communicator& comm, StagePlan plan);
  /// A rank that waits in vain in `work` says which stages are silent.
  template <typename Work>
  auto naming_silent_stages(const Work& work);
  class Step;
  StageSums compute(const StepPosition& position);
  /// Trains this rank's stages on neighbouring grains, each of which is a micro-batch.
  void train(const StepPosition& position, const std::vector<Grain>& share);
  Evaluation evaluate_in_rounds(EvaluatedPart part, const LeaveEvaluation& leave);
  /// Sums over all ranks of what was counted, and of what was refused, which is refusals_ from then on.
  /// @throws WrongRankError  sums among replicas, or a message between two stages, changed on their way
  StepSums sum_over_all(const StageSums& own, bool stop_requested, std::int64_t step);
  std::vector<double> of_all_tensors(const std::vector<double>& own);
  int replica() const { return comm_.rank() / plan_.width; }
  enum class Way { kOut, kBack };
  void move_state(const HeldRange& range, int holder, Way way);

  // Checks that find the rank that is wrong (stage_checks.cpp). All errors come on all ranks, and each says the same.

  /// From one stage to its neighbour.
  using Link = std::pair<int, int>;
  /// Between ranks, in the order in which a micro-batch passes them.
  std::vector<Link> links() const;
  /// "the activations of stage 0 (conv1 to relu1)"
  std::string message_name(const Link& link) const;
  /// The members of a pipeline that have each trained tensor.
  std::vector<int> holders() const;
  /// Messages of the step between stages of different ranks, then the gradients of tensors.
  std::vector<ComparedPart> share_parts() const;
  /// Fingerprints of these, of the step computed last; zeros for what other members have.
  /// @param gradients  of the tensors that this rank holds
  SumFingerprints share_of(const SumFingerprints& gradients) const;
  [[noreturn]] void throw_wrong_sums_of_a_stage(std::int64_t step);
  [[noreturn]] void throw_wrong_message(std::int64_t step) const;
  /// When this rank has waited in vain for a neighbour (pipeline_summary.cpp). A rank that waits for a dead stage lets
  /// others wait. All give up at about the same time, and each knows only its neighbour. So every rank that gives up
  /// tells all others that it lives, and listens to them for a moment. Where ranks are watched (Communicator::watch)
  /// there is nothing to find out.
  /// @throws PeerLostError  that names the stages and ranks that were silent; or `error`, if none was
  [[noreturn]] void throw_silent_stages(const PeerLostError& error) const;

  const PipelineOrder order_;
  const TrainingSetup& setup_;
  const DeviceSetup device_;
  Communicator& comm_;
  StagePlan plan_;
  int rank_;                                ///< in the pipeline
  std::unique_ptr<Communicator> replicas_;  ///< the ranks with the same stages
  std::unique_ptr<Communicator> members_;   ///< those of this pipeline, where there are others
  GradientUnits units_;                     ///< the whole network's
  HeldLayout held_;
  std::unique_ptr<StageEngine> engine_;
  std::unique_ptr<StageLinks> links_;
  StageWorker worker_;
  std::optional<SumsDifferError>
      sums_differ_;                     ///< among the replicas of this rank's stages, in the step under way
  AlignedBuffer<float> whole_weights_;  ///< rank 0's
  OptimizerBuffers whole_buffers_;      ///< rank 0's
  std::vector<TensorRefusals> refusals_;
  std::optional<cpu::int16::RoundingCount> rounding_;  ///< this rank's stages', in the step taken last
  std::size_t slots_of_row_;                           ///< in the trail; 0: the job keeps none
  double wall_seconds_ = 0;                            ///< in steps, without their updates
};

/// The share of a batch of a rank's pipeline.
DistributedSampler::Options pipeline_sampling(const TrainingOptions& options, const Dataset& data,
                                              const StagePlan& plan, int rank);

}  // namespace lockstep
