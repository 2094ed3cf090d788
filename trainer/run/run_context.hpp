// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run in hand, on every rank: what its loop, its recorder and its reporter share, and how it began.
#pragma once

#include "comm/communicator.hpp"
#include "trainer/config/job.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/run_writer.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/run/step_trace.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/strategy.hpp"
#include "trainer/verify/rank_checks.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

struct RunContext {
  /// Collective.
  RunContext(Job asked, Communicator& ranks, const DatasetFuture& data);

  std::int64_t steps() const { return steps_asked(job, steps_per_epoch); }
  bool steps_finished() const { return state.step >= steps(); }
  bool epoch_finished() const { return state.step_in_epoch == steps_per_epoch; }
  /// Evaluations without a better accuracy, as many as train.patience allows.
  bool out_of_patience() const {
    return job.train.patience > 0 && state.patience->without_better >= job.train.patience;
  }
  bool at_end() const { return steps_finished() || out_of_patience(); }
  /// Rate of the last step.
  double learning_rate() const { return strategy->weight_update().learning_rate(state.step - 1); }
  PublishedComparison compare_with_published(const std::string& sha256) const {
    return lockstep::compare_with_published(
        checkpoint_facts(state, job, setup, comm, strategy->whole_state().units), sha256);
  }

  Job job;  ///< run.dir as it was chosen: on rank 0 from begin_run() on, on all once the loop begins
  Communicator& comm;
  JobSetup setup;
  StepTrace trace;  ///< before the strategy, which asks for the rank's timeline
  std::unique_ptr<ParallelStrategy> strategy;
  std::shared_ptr<RankChecks> checks;
  std::int64_t steps_per_epoch;
  EvaluatedPart judge;  ///< set that training is evaluated on
  RunState state;
  Evaluations evaluations;           ///< results for the weights evaluated last
  std::int64_t first_step = 0;       ///< steps taken before this start of the run
  std::unique_ptr<RunWriter> files;  ///< rank 0's, where something is left to do; it speaks and writes
};

struct RunStart {
  std::string chosen;              ///< rank 0: which directory was chosen, and why; may be empty
  std::vector<std::string> hosts;  ///< names by rank
  bool resumed = false;            ///< from a checkpoint of its own, not of another run
  bool nothing_left = false;
  bool lacks_page = false;          ///< the run had ended before, and was killed before its page was written
  std::string names_taken;          ///< the sentence of a run that had no names of classes
  StartingWeights initial_weights;  ///< rank 0: what train.initial_weights gave
  std::unique_ptr<RunDirectory> directory;  ///< rank 0: locked, where nothing is left
};

/// Chooses the run's directory, takes state and weights from a checkpoint or initialises them, and opens its files.
/// Collective.
RunStart begin_run(RunContext& run);
/// A command of words that each end with a zero, quoted where a shell needs it. At most 4,096 bytes: " ..." stands for
/// the words from the first on that does not fit.
std::string shell_command(std::istream& words);
/// The event "start" of rank 0. @param setup_seconds  since the process began
nlohmann::ordered_json first_event(const RunContext& run, const RunStart& start, int hosts,
                                   double setup_seconds);

}  // namespace lockstep
