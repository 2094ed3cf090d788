// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Steps of a run computed again and compared with its trail and with what its files say.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "models/arena.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/tools/prove_claims.hpp"
#include "trainer/tools/prove_result.hpp"
#include "trainer/training/strategy.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// Diagnosis of a step whose result differs from its trail: the tensor, and the possible causes.

/// Facts of the run for a diagnosis.
struct DiagnosisFacts {
  const TrailHead& trail;
  const ParameterLayout& parameters;
  std::vector<std::size_t> bucket_sizes;  ///< as a checkpoint says them; may be empty
};

/// A step as it was replayed here.
struct ReplayedStep {
  std::int64_t step = 0;
  std::span<const std::uint64_t> fingerprints;
  std::uint64_t apart = 0;      ///< TrailRecord::apart of the ranks here
  bool first_replayed = false;  ///< computed from the starting point's own state
  std::string start;            ///< "the checkpoint of step 40", "the seed"
};

/// Nothing: the step is as the trail says.
/// @param ranks  that took it, if that is known: one whose copy of weights, buffers or sums was wrong is named
std::optional<Discrepancy> diagnose_step(const DiagnosisFacts& facts, const TrailRecord& recorded,
                                         const ReplayedStep& here,
                                         const std::optional<RecordedRanks>& ranks = {});

/// True if all ranks began the step in the right state and ended it with the same wrong sums. A replay of all
/// shares then finds the wrong one.
bool is_of_a_share(const Discrepancy& finding, const TrailRecord& recorded);

/// Modulo 2^64, how far the recorded sums of gradients are from those here.
std::uint64_t sums_apart(const TrailHead& head, const TrailRecord& recorded,
                         std::span<const std::uint64_t> here);

/// Names the rank whose share was wrong.
/// @param apart  sums_apart()   @param weighted  of the shares as they are computed here, as RankSums has them
void name_wrong_share(Discrepancy& finding, const RecordedRanks& ranks, std::uint64_t apart,
                      std::uint64_t weighted);

/// The state here after a step against the checkpoint of that step. Nothing: they are the same bits.
std::optional<Discrepancy> diagnose_state(const DiagnosisFacts& facts, const CheckpointState& checkpoint,
                                          std::span<const float> weights,
                                          const std::vector<std::span<const float>>& optimizer);

/// The bucket, from 1, in which an element of the arena left. Nothing: the sizes are not known, or do not fit.
/// @param sizes  of the buckets in elements, in the order in which they leave; the arena's end leaves first
std::optional<int> bucket_of(std::span<const std::size_t> sizes, std::size_t element, std::size_t parameters);

// Progress of a replay on a terminal, and the schedule of the ranks' meetings.

/// A bar on the terminal that standard output is; in a file or pipe, which only gets the verdict, nothing.
class ProofProgress {
 public:
  /// @param speaks  this is rank 0, and people are spoken to; otherwise every call does nothing
  /// @param what    "proving"
  /// @param steps   that are to be replayed
  ProofProgress(bool speaks, std::string what, std::int64_t steps)
      : bar_(ProgressBar::Style::kSilent, speaks), what_(std::move(what)), steps_(steps) {}
  /// So many more are done; draws when enough time has passed.
  void add(std::int64_t steps);
  /// So many are not replayed after all.
  void leave_out(std::int64_t steps) { steps_ -= steps; }

 private:
  ProgressBar bar_;
  std::string what_;
  std::int64_t done_ = 0, steps_;
};

/// Groups of ranks replay for different times. Every few seconds all ranks meet, so no wait for another rank's work is
/// longer than the usual deadline, and a rank that is stopped or hangs is found by it.
class ProofMeetings {
 public:
  /// @param comm   of all ranks; borrowed
  /// @param every  seconds from one to the next
  ProofMeetings(Communicator& comm, double every) : comm_(comm), every_(every) {}
  /// True if it is time to meet. The ranks of a group follow one of them.
  bool are_due() const { return comm_.size() > 1 && seconds_since(last_) >= every_; }
  /// Collective over all ranks: this one is still replaying.
  void meet() { someone_works(true); }
  /// Meets, when it is time, between the grains of an evaluation, on the thread that calls this. A rank of several does
  /// not: the others may have ended their share of it, and wait for this one.
  /// @param group  that evaluates
  LeaveEvaluation between_grains(const Communicator& group);
  /// Returns when all ranks have come here. Collective.
  void wait_for_all() {
    while (someone_works(false)) {
    }
  }

 private:
  bool someone_works(bool self);

  Communicator& comm_;
  double every_;
  Clock::time_point last_ = Clock::now();
};

/// Description of the run that is proved, on every rank that replays it.
struct ReplayedRun {
  const Job& job;  ///< as it is computed here
  const JobSetup& setup;
  const Trail& trail;
  const MetricsClaims& metrics;
  std::vector<std::size_t> bucket_sizes;  ///< the run's
};

/// Replays an interval on all ranks of `comm`, to its end or to the first step that differs. What is claimed of its
/// steps (lines of metrics.jsonl, the manifest at its end) is compared, too. Collective.
/// @param progress  is told of every step
/// @param meetings  of all ranks of the proof
/// @returns on rank 0, what was found out; `asked` stays empty
/// @throws AgreedError  a checkpoint cannot be read; the data are others than it was trained on
ProofResult replay(const ReplayedRun& run, const Interval& interval, Communicator& comm,
                   ProofProgress& progress, ProofMeetings& meetings);

// Comparison of a run's files with the replayed steps of an interval.

/// On the rank that leads the replay. The strategy's whole state must be that of the step where something is said of
/// the weights.
class ClaimCheck {
 public:
  /// Borrows all five.
  ClaimCheck(const ReplayedRun& run, const Interval& interval, ParallelStrategy& strategy,
             const Communicator& comm, ProofResult& verdict)
      : run_(run), interval_(interval), strategy_(strategy), comm_(comm), verdict_(verdict) {}

  /// Reads the claims about the interval. @throws DataError, IoError
  void read();
  /// The SHA-256 of the weights before the first step, where the run began from others' (train.initial_weights); or "".
  std::string initial_weights() const;
  /// The weights before the first step, as they are here.
  void begin_from(const StartingWeights& initial) { initial_ = initial; }
  /// The state that the replay starts from, as its checkpoint has it.
  void begin(const RunState& state);
  /// Next step after this one where a series must end. It has a claim, or a printed loss begins after
  /// it.
  std::int64_t next_stop(std::int64_t step) const;
  /// Keeps the epoch's sums so far, if a printed loss begins here.
  void remember(const RunState& state);
  /// True if there is a claim about the weights after this step, on that part of the data.
  bool wants_evaluation(std::int64_t step, EvaluatedPart part) const;

  /// Numbers of the step just replayed.
  struct StepNumbers {
    StepTotals totals;
    std::optional<double> gradient_norm;    ///< nothing: not wanted, or this device has none
    std::optional<double> rounded_to_zero;  ///< at the end of an epoch in int16
    Evaluations evaluations;                ///< those that were wanted
  };
  /// True if an event has the gradient norm of this step.
  bool wants_gradient_norm(std::int64_t step) const;
  void compare_lines(const RunState& state, const StepNumbers& numbers);
  /// Compares the manifest of the checkpoint after the interval.
  void compare_manifest(const CheckpointFacts& there, const RunState& state, const Evaluations& evaluations);

 private:
  std::vector<std::string> wrong_in(const ClaimedLine& line, const RunState& state,
                                    const StepNumbers& numbers);
  std::vector<std::string> wrong_in_step(const nlohmann::json& said, const RunState& state,
                                         const StepNumbers& numbers);
  double learning_rate(const RunState& state) const {
    return strategy_.weight_update().learning_rate(state.step - 1);
  }
  nlohmann::ordered_json end_of_run(const RunState& state, const Evaluations& evaluations) const;
  CheckpointFacts facts_here(const CheckpointFacts& there, const RunState& state,
                             const Evaluations& evaluations);
  std::optional<CheckpointPatience> patience_here(const CheckpointFacts& there) const;
  using SumsAtSteps = std::map<std::int64_t, LossWindow>;
  static std::optional<LossWindow> window(const SumsAtSteps& sums, const RunState& state, std::int64_t steps);
  bool is_of_another_test_set(std::int64_t step, std::int64_t samples);
  bool is_size_of_a_later_start(std::int64_t step, std::int64_t samples) const;

  const ReplayedRun& run_;
  const Interval& interval_;
  ParallelStrategy& strategy_;
  const Communicator& comm_;
  ProofResult& verdict_;
  bool end_is_tested_ = false, end_is_validated_ = false;  ///< the checkpoint at the end says an accuracy
  StartingWeights initial_;
  CheckpointPatience start_patience_;
  std::optional<CheckpointPatience> end_patience_;       ///< as that checkpoint says
  std::vector<std::pair<std::int64_t, double>> judged_;  ///< steps whose accuracy train.patience counts
  std::set<std::int64_t> windows_;     ///< steps after which a claimed loss or accuracy begins
  SumsAtSteps sums_at_, answers_at_;   ///< the epoch's sums there: losses; answers
  std::set<std::int64_t> test_sizes_;  ///< that the run's files speak of
  bool test_size_was_told_ = false;
};

}  // namespace lockstep
