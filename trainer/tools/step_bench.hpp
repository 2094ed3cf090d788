// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench step`: whole training steps, and where they go.
#pragma once

#include "comm/communicator.hpp"
#include "common/timeline.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/strategy.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

// `lockstep bench step`: whole training steps of a job, without logs, evaluation or checkpoints.

struct StepBenchOptions {
  int rounds = 15;  ///< turns of peak measurement, `world` and `off`
  int steps_per_round = 40;
  bool json = false;     ///< one JSON object in place of tables
  bool explain = false;  ///< say where a step goes, and what would help
  std::string trace;     ///< write the explained steps to this file, for ui.perfetto.dev; empty: not
  bool force = false;    ///< replace that file
};

/// Collective. Runs the job's steps with determinism `world` and `off`, and the fused multiply-add peak of
/// this core, in turns; rank 0 prints medians: samples/s, microseconds a step, fraction of the peak
/// (arithmetic of the network over time and over all threads), what `world` costs, and the shares of a step:
///   input      gathering and normalising the batch
///   exposed    communication that backward did not hide: in each step, the wait of the rank that was ready
///   last skew       rank 0's waiting for ranks that were ready later, because the machine kept them
///   optimiser  mean gradient and update
/// With `explain` or `trace`, steps of `world` more, whose course is written down (shares_of()).
/// @throws AgreedError  those are asked for on a GPU; the file cannot be written; parallel.strategy is not data; a step
/// cannot be taken
void bench_step(Communicator& comm, const Job& job, const DatasetFuture& data,
                const StepBenchOptions& options);

/// One way to run the job's steps, from weights of its seed on.
struct BenchedWay {
  BenchedWay(std::string name, const Job& job, Communicator& comm, JobSetup made);
  /// The next steps, of one epoch. Collective. @throws AgreedError  one of them meets NaN or infinity
  void take(std::int64_t count);

  std::string label;
  JobSetup setup;
  std::unique_ptr<ParallelStrategy> strategy;
  std::int64_t batch = 0;       ///< samples of a full step: no more than there are
  std::int64_t full_steps = 0;  ///< those of an epoch that have a full batch
  std::int64_t step = 0;        ///< steps taken
};

/// Sum over the steps of the shortest wait of all ranks: the part that is communication alone. Collective.
/// @param waits  this rank's, one for each step
double waits_of_last_arrivals(Communicator& comm, const std::vector<double>& waits);

/// Rows of the ways of the JSON, their overlap where there are several ranks, and the departures of buckets.
std::string ways_text(const nlohmann::ordered_json& ways, int ranks, double world_over_off);

/// The job with one key of its section changed.
Job with(Job job, auto key, auto value) {
  job.parallel.*key = value;
  return job;
}

// `lockstep bench step` on GPUs: whole training steps, as the host launches them.

/// Collective. Runs the job's full-batch steps in several ways in turns and prints medians: microseconds a
/// step, the host's part of them (queueing; the rest of the time the host waits or is free), samples/s and
/// FLOP/s. The ways: the job's, without graphs, with determinism `off`, and with vendor kernels where they
/// are installed.
/// @param setup  what set_up() made of the job
void bench_device_step(Communicator& comm, const Job& job, const DatasetFuture& data,
                       const StepBenchOptions& options, JobSetup setup);

/// A way of its JSON as a row.
std::string device_way_text(const nlohmann::ordered_json& way);

// Profile of a step, with advice: `lockstep bench step --explain`.

struct LayerTime {
  std::string name;
  double forward = 0, backward = 0;  ///< seconds a step
};

/// Profile of traced steps of one rank. Seconds are those of a step.
struct StepShares {
  std::int64_t steps = 0;
  double seconds = 0;  ///< per whole step
  /// Self time of each kind of work, without nested work: the mean of the threads.
  std::array<double, kWorks> own{};
  /// All-reduces of gradients: while one was under way, and the part of it in which the rank did not wait.
  double under_way = 0, hidden = 0;
  std::vector<LayerTime> layers;  ///< the slowest first

  double of(Work work) const { return own[static_cast<std::size_t>(work)]; }
  /// In none of the kinds of work that have a name for people.
  double rest() const;
};

/// @param threads  that compute
StepShares shares_of(const Timeline& timeline, int threads);

/// Facts that the shares do not include.
struct StepSurroundings {
  int ranks = 1;
  int local_ranks = 1;  ///< those of this host
  int threads = 1;
  std::int64_t grains = 1;  ///< per step, on this rank
  std::size_t buckets = 1;
  int cores = 1;                 ///< that the ranks of this host may use together
  bool oversubscribed = false;   ///< more ranks on this host than cores
  double exposed = 0, skew = 0;  ///< shares of a step: as `bench step` measures them
  double share_of_peak = 0;
  std::map<std::string, double> layer_seconds_at_peak = {};  ///< by name: a step's, of those with products
};

/// Advice, a sentence for each, the most useful first; never none.
std::vector<std::string> advice_for(const StepShares& shares, const StepSurroundings& around);

/// Lines of at most 80 columns.
std::string explanation_text(const StepShares& shares, const StepSurroundings& around);
nlohmann::ordered_json explanation_json(const StepShares& shares, const StepSurroundings& around);

}  // namespace lockstep::bench
