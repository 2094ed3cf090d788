// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `pipeline`: each rank has some layers of the network, and grains pass through them one after the
/// other. The bits are those of one rank.
///
/// Also finds the rank of a pipeline that computes or remembers wrongly, or has a bad link. It compares sums among
/// replicas, messages between stages, and replays, in which each pipeline computes the share of the next one.
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
#include "trainer/training/setup.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/training/training_step.hpp"
#include "trainer/training/wrong_rank.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// Checks that find the rank that is wrong.

/// One rank's end. All errors come on all ranks, and each says the same.
class StageChecks {
 public:
  /// Objects that it looks at; borrowed.
  struct Parts {
    const TrainingSetup& setup;
    const StagePlan& plan;
    const HeldLayout& held;
    const DistributedSampler& sampler;
    Communicator& comm;          ///< all ranks
    Communicator& replicas;      ///< those with the same stages
    const WeightUpdate& update;  ///< the whole network's
    StageEngine& engine;
    const StageWorker& worker;
    bool on_gpu;
  };
  /// Collective.
  explicit StageChecks(const Parts& parts);

  /// This rank's stages found that sums among the replicas differ.
  void note(const SumsDifferError& error) { sums_differ_ = error; }
  /// Numbers that ranks must add up after a step: how many there are, and this rank's.
  std::size_t numbers() const { return 1 + parts_.worker.messages().sent.size(); }
  void append_to(std::vector<std::int64_t>& numbers) const;
  /// Collective. @param summed  the same over all ranks
  /// @throws WrongRankError  sums among replicas, or a message between two stages, changed on their way
  void expect_right(std::span<const std::int64_t> summed, std::int64_t step);

  std::int64_t replays_every() const { return replay_every_; }
  /// After the step that follows so many, pipelines compute each other's shares again.
  bool is_replayed(std::int64_t global_step) const {
    return replay_every_ > 0 && (global_step + 1) % replay_every_ == 0;
  }
  /// Collective, between a step's reduction and its update.
  /// @param compute_share  lets the worker train on the share of a pipeline
  /// @returns of it, StageEngine::end_replay()
  /// @throws WrongRankError
  void replay(const StepPosition& position,
              const std::function<SumFingerprints(int pipeline)>& compute_share) const;
  /// Fingerprints of this rank's tensors, in the row of the whole network.
  SumFingerprints state_fingerprints() const;
  /// Collective. @throws WrongRankError  the row of this rank's stages is not that of the other replicas
  void expect_equal_rows(const SumFingerprints& row, std::int64_t step) const;

 private:
  /// From one stage to its neighbour.
  using Link = std::pair<int, int>;

  [[noreturn]] void throw_wrong_sums_of_a_stage(std::int64_t step);
  [[noreturn]] void throw_wrong_message(std::int64_t step) const;
  std::vector<Link> links() const;
  std::string message_name(const Link& link) const;
  /// The rank of a pipeline that has a tensor.
  int holder_of(std::size_t tensor) const;
  std::vector<ReplayedPart> state_parts() const;
  std::vector<ReplayedPart> share_parts() const;
  SumFingerprints of_share(const SumFingerprints& held) const;
  SumFingerprints of_samples(const StepPosition& position, int pipeline) const;
  SumFingerprints of_pipeline(const SumFingerprints& mine) const;
  int rank() const { return parts_.comm.rank() % parts_.plan.width; }

  const Parts parts_;
  std::int64_t replay_every_;               ///< steps; 0: never
  std::unique_ptr<Communicator> pipeline_;  ///< for replays: the ranks of this one
  std::optional<SumsDifferError> sums_differ_;
};

// The strategy.

/// A grain's gradient is rounded once and added as integers, wherever its layers ran. So stages leave no trace,
/// as ranks leave none. Whether a step may move the weights depends on all tensors, and all ranks decide it
/// alike, from numbers summed over all of them.
class Pipeline final : public ParallelStrategy {
 public:
  /// Borrows the setups, which last as long.
  Pipeline(const PipelineOptions& options, const TrainingSetup& setup, const DeviceSetup& device,
           Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  std::int64_t longest_series() const override { return 1; }
  Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) override;

  TrainedState whole_state() override;
  void distribute() override;
  void collect() override;
  void exchange_weights(const std::string& average) override;
  void check_copies(std::int64_t step) override;
  void check_rows(const std::vector<std::uint64_t>& row, std::int64_t step) override;
  std::int64_t replays_every() const override { return checks_.replays_every(); }
  CombinedFingerprints combine_fingerprints(std::span<std::uint64_t> rows, std::size_t slots,
                                            std::span<const std::uint64_t> own_sums) override;

  std::optional<std::vector<std::int64_t>> held_tensors() const override;
  std::optional<double> gradient_norm() override;
  std::optional<double> rounded_to_zero() override { return share_rounded_to_zero(comm_, rounding_); }
  /// All but the sums after their reduction; those on their way where there are replicas.
  void probe_next_step(const StepProbe& probe) override;

  const WeightUpdate& weight_update() const override { return update_; }
  const DistributedSampler& sampler() const override { return sampler_; }
  StrategyDescription describe() const override;
  StrategySummary summary() override;

 private:
  /// A rank that waits in vain in `work` says which stages are silent.
  template <typename Work>
  auto naming_silent_stages(const Work& work);
  class Step;
  void step(const StepPosition& position, bool stop_requested, StepSeries& series);
  void update(const StepPosition& position, const StepTotals& totals, StepSeries& series);
  StageSums compute(const StepPosition& position);
  /// A step's reduction. @throws WrongRankError
  StepSums reduce(const StepPosition& position, bool stop_requested);
  /// Trains this rank's stages on the share of a pipeline, which has so many micro-batches.
  void train(const StepPosition& position, int pipeline, const std::function<void(int)>& begin);
  Evaluation evaluate_in_rounds(EvaluatedPart part, const LeaveEvaluation& leave);
  /// Sums over all ranks of what was counted, and of what was refused, which is refusals_ from then on.
  StepSums sum_over_all(const StageSums& own, bool stop_requested, std::int64_t step);
  std::vector<double> of_all_tensors(const std::vector<double>& own);
  int replica() const { return comm_.rank() / plan_.width; }
  enum class Way { kOut, kBack };
  void move_state(const HeldRange& range, int holder, Way way);

  const PipelineOptions options_;
  const TrainingSetup& setup_;
  const DeviceSetup device_;
  Communicator& comm_;
  StagePlan plan_;
  int rank_;                                ///< in the pipeline
  std::unique_ptr<Communicator> replicas_;  ///< the ranks with the same stages
  DistributedSampler sampler_;
  GradientUnits units_;  ///< the whole network's
  WeightUpdate update_;  ///< the whole network's
  HeldLayout held_;
  std::unique_ptr<StageEngine> engine_;
  std::unique_ptr<StageLinks> links_;
  StageWorker worker_;
  StageChecks checks_;
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

// Descriptions of a pipeline: the stages at a run's start, and at its end their times.

StrategyDescription describe_pipeline(PipelineOrder order, const StagePlan& plan);

/// Measures of one rank, since the run began.
struct PipelineMeasures {
  const StagePlan& plan;
  StageWorker& worker;
  int grains = 0;  ///< micro-batches of a full batch in this rank's pipeline
  std::int64_t bytes_sent = 0;
  double wall = 0;  ///< seconds in steps, without their updates
};

/// The share of the ranks' time in steps in which they computed nothing, beside the formulas. Also what was sent; and
/// of each stage what it holds and takes. Collective; on rank 0, and nothing if no step was taken.
StrategySummary summarise_pipeline(const PipelineMeasures& mine, Communicator& comm);

// Search for a dead stage, when ranks have waited in vain for their neighbours.

/// A rank that waits for a dead stage lets others wait. All give up at about the same time, and each knows only its
/// neighbour. So every rank that gives up tells all others that it lives, and listens to them for a moment. Where ranks
/// are watched (Communicator::watch) there is nothing to find out.
/// @throws PeerLostError  that names the stages and ranks that were silent; or `error`, if none was
[[noreturn]] void throw_silent_stages(const PeerLostError& error, const StagePlan& plan, Communicator& comm);

}  // namespace lockstep
