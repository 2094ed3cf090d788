// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl: what happened in a run, one JSON object a line, in order. Each event and field that is written here
/// is a row of docs/reference/metrics.md, too: a test compares them.
#pragma once

#include "comm/communicator.hpp"
#include "common/digest.hpp"
#include "common/env.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/training/evaluator.hpp"
#include "trainer/training/strategy.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// The events whose numbers follow from the job and its data, times aside: `lockstep prove` computes them again.

/// The "start" event of metrics.jsonl.
nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                   const Communicator& comm, int hosts);
/// Appends the source of the weights, unless they are the network's own.
void add_initial_weights(nlohmann::ordered_json& start, const StartingWeights& initial);
/// Event of the last step. @param totals  of that step
nlohmann::ordered_json step_event(const RunState& state, const StepTotals& totals, double learning_rate);
/// Appends to a step's event the right answers and the steps since the last such event, and the gradient's
/// norm. The norm is left out where there is none.
void add_training_numbers(nlohmann::ordered_json& event, const LossWindow& window,
                          std::optional<double> gradient_norm);
/// Event of the steps since the last such event.
nlohmann::ordered_json loss_event(const RunState& state, const LossWindow& window, double learning_rate);
// Names of evaluated numbers: "test_loss" and so on, or "validation_loss", as far as they exist. Averages of
// the weights have "ema_test_loss" and so on.

/// Event of the epoch whose steps are all taken.
nlohmann::ordered_json epoch_event(const RunState& state, double learning_rate,
                                   const Evaluations& evaluations, double train_seconds);
/// Appends ParallelStrategy::rounded_to_zero(), where it is known.
void add_rounding(nlohmann::ordered_json& event, std::optional<double> rounded_to_zero);
/// Event of an evaluation within an epoch.
nlohmann::ordered_json evaluation_event(const RunState& state, const Evaluations& evaluations);
nlohmann::ordered_json end_event(const RunState& state, const Evaluations& evaluations, double seconds);
/// Appends the final weights, after the strategy's own numbers.
void add_weights(nlohmann::ordered_json& end, const std::string& sha256,
                 const PublishedComparison& published);

/// Appends events to a file. A line is in it whole or not at all: what a full disk cut short is taken back,
/// kept in memory, and written before the next line.
class MetricsWriter {
 public:
  /// Opens for appending after the lines that are there. @throws IoError
  MetricsWriter(Env& env, const std::string& path);

  /// @throws IoError if the line is not in the file yet
  void write(const nlohmann::ordered_json& event);
  /// Returns when all lines will survive a power loss. May run on another thread than write.
  /// @throws IoError also if a line is not in the file yet
  void sync() { file_.sync(); }
  /// True if every line is in the file.
  bool is_complete() const { return file_.is_complete(); }
  /// Position for a checkpoint: all lines so far. They are in the file once sync() has returned.
  CheckpointMetrics position() const { return {lines_, hex(hash_.so_far())}; }

 private:
  std::int64_t lines_ = 0;
  Sha256 hash_;  ///< of the bytes of those lines
  AppendFile file_;
};

// Measurements of an epoch: step times, comparison of ranks, memory. They are not part of the mathematics: a
// replay ignores them.

/// Clock readings of one rank. Plain numbers, so that they can be gathered.
struct RankClock {
  double busy_seconds = 0;     ///< in steps, without the next one
  double exposed_seconds = 0;  ///< in steps, its own work done: waiting for communication and other ranks
  std::uint64_t resident = 0, peak_resident = 0;  ///< bytes of the process
  std::uint64_t device = 0, peak_device = 0;      ///< bytes allocated on its GPU; 0: it has none
};

/// Peak memory of a rank's process in bytes, and the part shared with other processes: libraries, and sets of data.
struct RankMemory {
  std::uint64_t peak = 0, shared = 0;
};

/// The peaks of ranks of one host together, where what they share counts once.
std::uint64_t resident_together(std::span<const RankMemory> ranks);

class EpochClock {
 public:
  /// An epoch begins, or goes on after a resume.
  void start(const ParallelStrategy& strategy);
  /// A series of steps has ended: each of them took its share.
  void add(std::int64_t steps, double seconds);

  /// The seconds that `share` of the steps did not exceed; 0 without steps.
  double percentile(double share) const;
  /// Collective. @param gpu  of this rank; may be null
  std::vector<RankClock> all_ranks(const ParallelStrategy& strategy, const Gpu* gpu,
                                   Communicator& comm) const;
  /// Percentiles, memory of the rank that has most, and of several ranks whose clocks tell it how they compare.
  void add_to(nlohmann::ordered_json& event, const std::vector<RankClock>& ranks) const;

 private:
  struct Series {
    double seconds_of_step = 0;
    std::int64_t steps = 0;
  };
  std::vector<Series> series_;
  StepTimes at_start_;
};

}  // namespace lockstep
