// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A step on CPUs of a network with layers that need sums over the global batch (models/batch_layer.hpp).
/// All grains of a rank are under way at once, and go from cut to cut.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "data/sampler.hpp"
#include "models/batch_layer.hpp"
#include "trainer/training/worker_pool.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace lockstep {

/// A grain under way, and the thread that computes it.
struct GrainInWork {
  ThreadContext& thread;
  Execution& execution;
  std::vector<std::int32_t>& labels;
  const Grain& grain;
};

class CutStep {
 public:
  /// Engine work for a grain, called by the grain's thread.
  struct Calls {
    /// Loads the input and calls Execution::begin_training with these statistics.
    std::function<void(const GrainInWork&, BatchStatistics&)> begin;
    /// After forward: the loss, and Execution::begin_backward.
    std::function<void(const GrainInWork&)> loss;
  };

  /// Borrows all references. Without cuts it takes no memory and may not run.
  /// @param most_grains  of this rank in a step
  /// @param recomputes   as those of the threads
  CutStep(const Network& network, Communicator& comm, WorkerPool& pool, std::vector<ThreadContext>& threads,
          std::size_t most_grains, bool recomputes);

  /// Source of sums at cuts.
  enum class Sums {
    kOverRanks,
    kAsBefore,  ///< from the last run over ranks, whatever the grains: for a share of that step, on one rank
  };

  bool needed() const { return !cuts_.empty(); }
  /// True if it has memory for so many grains.
  bool has_room_for(std::size_t grains) const { return !needed() || grains <= labels_.size(); }
  /// Gradients of all grains, added to the reducer, whose step has begun. Collective over ranks, whatever a rank's
  /// grains.
  /// @param samples  of the global batch
  /// @returns seconds spent in sums over ranks
  double run(const std::vector<Grain>& grains, std::int64_t samples, const Calls& calls,
             GradientReducer& reducer, Sums sums);
  /// Fingerprints of what this rank's grains added to the sums of the last run: cut by cut, in its order.
  const SumFingerprints& own_sums() const { return own_sums_; }
  /// After a step that was taken: layers keep what they keep of it.
  /// @param weights  with the kept tensors after the parameters
  void move_kept(float* weights);

 private:
  /// Calls work(grain in work, its thread's words) for each grain, thread by thread.
  template <class Work>
  void for_each_grain(const std::vector<Grain>& grains, const Work& work);
  /// Sums over all ranks what the threads added, in the words of the first one. Nothing: they stay as before.
  const std::int64_t* sum_over_ranks(const Cut& cut);
  void forward(const std::vector<Grain>& grains, std::int64_t samples, const Calls& calls);
  void backward(const std::vector<Grain>& grains, std::int64_t samples, GradientReducer& reducer);
  /// In place of the gradients of grains, on a rank that has none, between two cuts in backward.
  void pass_over(GradientReducer& reducer, std::size_t first_layer, std::size_t last_layer);

  const Network& network_;
  Communicator& comm_;
  WorkerPool& pool_;
  std::vector<ThreadContext>& threads_;
  std::vector<Cut> cuts_, backward_cuts_;
  BatchStatistics statistics_;
  std::vector<Execution> more_;                     ///< for the grains beyond one for each thread
  std::vector<std::vector<std::int32_t>> labels_;   ///< one for each grain
  std::vector<AlignedBuffer<std::int64_t>> words_;  ///< one for each thread
  Sums sums_ = Sums::kOverRanks;                    ///< in the run under way
  SumFingerprints own_sums_;
  double waited_ = 0;  ///< seconds in sums over ranks, in the run under way
};

/// @throws OptionError  a global batch is too small for a layer that looks at it: names both
void require_samples_for_cuts(const Network& network, const DistributedSampler::Options& sampling);
/// For strategies that never have a whole global batch in work at once.
/// @param strategy  its name, for the message
/// @throws OptionError  a layer looks at it
void require_no_cuts(const Network& network, std::string_view strategy);

}  // namespace lockstep
