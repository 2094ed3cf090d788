// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the ranks of a run share its work: the one thing that the training loop asks. A strategy is a class of this kind,
/// a row in trainer/setup/strategies.cpp and one in trainer/config/job_values.cpp.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "common/error.hpp"
#include "data/sampler.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "models/network.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/step_observer.hpp"
#include "trainer/training/step_series.hpp"
#include "trainer/training/teams.hpp"
#include "trainer/training/trained_state.hpp"
#include "trainer/training/weight_update.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Facts that are no part of the mathematics: for the event "start" and for the manifest of checkpoints.
using StrategyFacts = std::vector<std::pair<std::string, std::string>>;

/// Rank 0's description of a strategy when a run starts.
struct StrategyDescription {
  std::string sums;                     ///< how gradients are added up: "buckets: none, one rank"
  std::vector<std::string> lines = {};  ///< whole lines more; may be none
  StrategyFacts facts;
  std::string for_log = {};  ///< a line for experts, which the log alone gets; may be empty
  bool has_graphs = true;    ///< on a GPU, steps may be graphs
};

/// Seconds spent since the strategy was made.
struct StepTimes {
  double total = 0;
  double input = 0;      ///< CPU: gather and normalise, of the busiest thread
  double under_way = 0;  ///< CPU: from when the first gradients left until all were summed
  double exposed = 0;    ///< CPU: waiting for communication after backward had ended
  double comparing = 0;  ///< CPU: after that, comparing the sums with what the ranks sent
  double optimizer = 0;  ///< CPU
  double queueing = 0;   ///< GPU: the host's time to queue the steps
  /// CPU: of each bucket, from the start of the arithmetic until it left.
  std::vector<double> until_left = {};
};

/// Summary of a strategy when a run has ended.
struct StrategySummary {
  std::vector<std::string> lines;                       ///< for people
  std::vector<std::pair<std::string, double>> numbers;  ///< for the event "end"; no part of the mathematics
};

/// Measures of the step taken last, with the same bits on any ranks where sums are exact.
struct StepMeasures {
  /// The L2 norm of the mean gradient. Nothing where it is not at hand: on a GPU, and under hogwild.
  std::optional<double> gradient_norm = {};
  /// With train.precision: int16, of an epoch's last step. Over all layers, the share of the nonzero gradients of
  /// outputs that become 0 in the units of weight gradients. Nothing after other steps.
  std::optional<double> rounded_to_zero = {};
};

/// @returns true if it has changed the state
using StateVisit = std::function<bool(const TrainedState& own)>;

/// One rank's end of a strategy. Where a call is collective all ranks make it, at the same time and with
/// equal arguments, unless it says otherwise.
///
/// Ownership of the weights is the strategy's own affair. Every rank has them (data), each rank a part
/// (pipeline), or all ranks together (one memory). The loop knows only the *whole state*, in the memory
/// of rank 0's host: it fills it from a checkpoint and calls distribute(); it calls collect() and writes a
/// checkpoint of it. What collect() brought stays there until the next run().
class ParallelStrategy {
 public:
  virtual ~ParallelStrategy() = default;
  ParallelStrategy(const ParallelStrategy&) = delete;
  ParallelStrategy& operator=(const ParallelStrategy&) = delete;

  /// Trains `count` steps from `position` on, which lie in one epoch. Fewer if one fails: then the weights
  /// stay as they were before it. A step is one global batch, over which every sample is counted once,
  /// whichever rank computes it; when this returns, no rank is working on the weights. Collective, except that
  /// `stop_requested` may differ: the series says whether any rank's was set. All ranks get equal series.
  /// @throws SumsDifferError  sums have changed on their way, and no observer has named the rank
  virtual StepSeries run(const StepPosition& position, std::int64_t count, bool stop_requested) = 0;
  /// The longest series that is worth while; the same on all ranks. Requests to stop are heard between them.
  std::int64_t longest_series() const { return series_.steps(); }
  /// Loss and accuracy over the job's test set or what is held out, each sample counted once. Collective; a rank
  /// whose `leave` says so gives up, and all hear of it. All ranks get equal results.
  virtual Evaluation evaluate(EvaluatedPart part, const LeaveEvaluation& leave) = 0;

  /// The whole state. On rank 0 alone its numbers mean something; sizes and names do on every rank that has
  /// them, and a rank that never holds the whole has empty spans.
  virtual TrainedState whole_state() = 0;
  /// Makes rank 0's whole state that of the run. Collective.
  virtual void distribute() = 0;
  /// Brings the run's state into rank 0's whole state. Collective.
  virtual void collect() = 0;
  /// Shows the state that this rank trains, brought into host memory: Teams::held, in its order. Empty where it holds
  /// none. Goes on from what `visit` made of it.
  virtual void visit_own_state(const StateVisit& visit) = 0;
  /// The ranks that hold and compute the same.
  const Teams& teams() const { return teams_; }

  /// Adds an observer of every step from the next one on.
  void observe(std::shared_ptr<StepObserver> observer) { observers_.add(std::move(observer)); }
  /// @throws ConfigError  this rank cannot show that part of a step to an observer
  virtual void require_sight(Sight /*part*/) const {
    throw ConfigError(
        "inject.what: this parallel.strategy cannot reach what it trains; use the strategy data");
  }
  /// Once kept: why a series failed on this rank, or an evaluation was left, where samples could not be read.
  UnreadSamples& unread() { return unread_; }

  /// The whole network's.
  const WeightUpdate& weight_update() const { return update_; }
  /// This rank's sampler: steps an epoch, sizes of batches.
  const DistributedSampler& sampler() const { return sampler_; }
  virtual StrategyDescription describe() const = 0;
  /// Collective.
  virtual StepMeasures measures() { return {}; }
  /// Times, from strategies that measure them.
  const StepTimes& times() const { return times_; }
  /// Facts worth telling when the run has ended, on rank 0. Collective.
  virtual StrategySummary summary() { return {}; }

 protected:
  /// @param layout          of the whole network
  /// @param longest_series  however short steps are
  ParallelStrategy(const TrainingOptions& options, const ParameterLayout& layout,
                   const DistributedSampler::Options& sampling, std::int64_t longest_series)
      : sampler_(sampling), update_(options, layout, sampler_.steps_per_epoch()), series_(longest_series) {}

  DistributedSampler sampler_;
  WeightUpdate update_;
  Teams teams_;  ///< those of a rank alone, unless the constructor says others
  StepTimes times_;
  SeriesLength series_;
  StepObservers observers_;
  UnreadSamples unread_;
};

/// Exchanges the weights with one of their averages (WeightAverages), on every rank, until the next call.
/// That is how an average is evaluated. Only where the job keeps averages.
void exchange_weights(ParallelStrategy& strategy, const std::string& average);

/// Adds to `found` the evaluation of every average of the weights that there is after so many steps. Collective.
/// @returns false if it was left, on all ranks
bool evaluate_averages(ParallelStrategy& strategy, std::int64_t steps, EvaluatedPart part,
                       const LeaveEvaluation& leave, Evaluations& found);

// Units of gradients on their way from rank 0 to all.

/// Gives all ranks the units of rank 0. Collective.
inline void broadcast_units(Communicator& comm, GradientUnits& units) {
  std::vector<std::int16_t> exponents(units.exponents().begin(), units.exponents().end());
  std::int64_t changed_at = units.changed_at();
  broadcast(comm, std::span(exponents));
  broadcast(comm, changed_at);
  units.restore(exponents, changed_at);
}

// The share that int16 rounds away.

inline bool counts_rounding(const Network& network, const DistributedSampler& sampler,
                            const StepPosition& position) {
  return network.precision() == Precision::kInt16 && position.step_in_epoch + 1 == sampler.steps_per_epoch();
}

/// Collective, unless nothing was counted, on all ranks alike.
inline std::optional<double> share_rounded_to_zero(Communicator& comm,
                                                   const std::optional<cpu::int16::RoundingCount>& own) {
  if (!own) return std::nullopt;
  std::array<std::int64_t, 2> counts = {own->nonzero, own->to_zero};
  comm.all_reduce(std::span<std::int64_t>(counts));
  return counts[0] == 0 ? 0.0 : static_cast<double>(counts[1]) / static_cast<double>(counts[0]);
}

}  // namespace lockstep
