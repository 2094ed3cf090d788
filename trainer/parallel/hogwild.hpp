// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The strategy `hogwild`. The ranks of one host move one set of weights, each on its own, without waiting for
/// each other (Niu, Recht, Re, Wright, 2011; PyTorch's share_memory()).
#pragma once

#include "comm/communicator.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "trainer/training/host_arena.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/training/training_loss.hpp"
#include "trainer/training/worker_pool.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

// The one set of weights that all ranks of a hogwild run train, without locks.

/// Every number is read and written by a relaxed atomic access, so no access is a data race. An update
/// may be lost: a write between another rank's read and write is overwritten.
class SharedWeights {
 public:
  /// Collective, as its end is. All zeros.
  SharedWeights(Communicator& comm, std::size_t count);

  /// Number by number: with others at work it may be a mix of their updates. Same sizes.
  void read(std::span<float> into) const;
  void write(std::span<const float> from);

  /// Adds after - before to each number as it is by now.
  void move(std::span<const float> before, std::span<const float> after);

 private:
  SharedMemory memory_;
  std::span<float> weights_;
};

/// Each rank takes its share of a global batch, as in data parallel training. It makes of it an update of its
/// own: the mean gradient over this share, from the weights as they are at that moment. What an optimiser
/// remembers is each rank's own; rank 0's is saved, and all start from it after a resume. Results depend on
/// who was faster, so no two runs are alike.
class Hogwild final : public ParallelStrategy {
 public:
  Hogwild(const TrainingSetup& setup, Communicator& comm);

  StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) override;
  Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) override;

  TrainedState whole_state() override { return arena_.state(); }
  void distribute() override;
  void collect() override;
  /// It cannot be changed: its weights are those of all.
  void visit_own_state(const StateVisit& visit) override { LOCKSTEP_CHECK(!visit(whole_state())); }
  StrategyDescription describe() const override;

 private:
  struct Share;  ///< result of one rank's part of a series

  void step(const StepPosition& position, Share& share);
  void compute(const StepPosition& position, const Grain& grain, Share& share);
  std::span<const std::int32_t> samples_of(const std::vector<Grain>& grains,
                                           std::int64_t step_in_epoch) const;
  bool gradient_is_finite(Share& share);
  StepSeries together(const Share& mine, std::int64_t count) const;

  const Network& network_;
  const TrainingSetup& setup_;
  const TrainTestData& data_;
  Communicator& comm_;
  int grain_;
  std::uint64_t seed_;
  LossKind loss_kind_;
  TrainingLoss loss_;
  LossRule loss_rule_;  ///< for the step under way
  MixedShare mixed_;    ///< for the step under way
  BatchLoader loader_;
  WorkerPool pool_;
  std::vector<ThreadContext> threads_;  ///< one
  SharedWeights shared_;
  AlignedBuffer<float> before_;  ///< the weights that a step began with
  HostArena arena_;              ///< this rank's copies; units are those of a run's start
};

}  // namespace lockstep
