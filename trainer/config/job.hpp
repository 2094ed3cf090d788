// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job: everything that a training run depends on. Field order and names are those of the job file.
#pragma once

#include "common/error.hpp"
#include "common/output.hpp"
#include "data/augmentation.hpp"
#include "data/sets/set_loading.hpp"
#include "trainer/config/run_section.hpp"
#include "trainer/device/options.hpp"
#include "trainer/parallel/options.hpp"
#include "trainer/training/options.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Mean and std are those of the catalogue where it knows them: load_job and parse_job put them in. load_job reads the
/// list of samples to leave out; dataset_options() fills in the other options.
struct DataSection : BatchOptions, DatasetOptions {
  OnDevice on_device = OnDevice::kAuto;
  std::string leave_out_file = {};         ///< names training samples; empty: none
  std::vector<Augmentation> augment = {};  ///< changes of training images, in order
};

struct TrainSection : UpdateOptions, LossOptions {
  std::uint64_t seed = 1234;
  std::int64_t max_steps = 0;             ///< stop after so many optimiser steps; 0: no limit
  std::int64_t evaluate_every_steps = 0;  ///< besides after each epoch; 0: only then
  std::int64_t patience = 0;    ///< evaluations without a better accuracy after which the run ends; 0: never
  std::string initial_weights;  ///< a safetensors file to start from; empty: initialise from the seed
  bool partial = false;         ///< takes its tensors that fit; the others start as from the seed
  bool recompute = false;       ///< backward makes activations again in place of keeping all of them
  double initial_scale = 0;     ///< weights start from N(0, scale^2), biases from 0; 0: as the model says
  Precision precision = Precision::kFp32;
};

template <>
inline constexpr Spellings<PictureFit, 3> kSpellings<PictureFit> = kPictureFits;

struct ParallelSection : StepOptions, PipelineOptions {
  std::string strategy = "data";       ///< name of a StrategyKind: trainer/config/job_values.hpp
  std::string device = "auto";         ///< auto | cpu | cuda | cuda:N | emulated
  std::string backend = "auto";        ///< auto | mpi | nccl | thread
  Kernels kernels = Kernels::kNative;  ///< on a GPU
  GraphUse graph = GraphUse::kOn;      ///< on a GPU
  int ranks = 0;                       ///< with backend thread: how many; otherwise mpirun or srun says
  std::size_t bucket_bytes = 0;        ///< 0: auto
  std::int64_t check_replicas_every_steps = 500;  ///< 0: only before each evaluation and save
  double timeout_seconds = 300;                   ///< bounds every wait for other ranks
  bool watchdog = true;                           ///< ranks under MPI watch each other
};

/// A fault on purpose, to see what happens then (docs/what-happened.md).
struct InjectSection {
  std::int64_t rank = 0;
  std::int64_t step = 0;  ///< counted from 1; strikes before it is computed
  std::string what = "none";

  bool is_given() const { return rank != 0 || step != 0 || what != "none"; }
};

struct Job {
  std::string name = "job";  ///< the job file's, without folder and .yaml; not a key
  /// Place of each key that was given, as messages begin: "job.yaml:3:9: "; for "" the file alone.
  std::map<std::string, std::string, std::less<>> places = {};
  std::string model = "net";
  DataSection data;
  TrainSection train;
  ParallelSection parallel;
  RunSection run;
  InjectSection inject = {};

  /// True if the file or an override gave this key.
  bool gives(std::string_view key) const { return places.contains(key); }
};

/// Reads a job file and applies `key=value` overrides in order ("train.optimizer.lr=0.1"). The job.yaml of a run is that
/// run's, wherever it lies now: its folder is run.dir, unless an override says another.
/// @param path  also the name of a job that comes with the program: "mnist"
/// @throws MissingDataError  the file is not there
/// @throws ConfigError       one line: file:line:column, what is wrong, "did you mean"; or which override
Job load_job(const std::string& path, const std::vector<std::string>& overrides);
/// Parses the text of a job; `file` is for messages. `model` is left as written.
Job parse_job(const std::string& yaml, const std::string& file,
              const std::vector<std::string>& overrides = {});
/// Job files that come with the program: where it is installed, or in its source tree.
std::vector<std::string> shipped_jobs();
/// Error that shows only when the job is carried out: "job.yaml:3:9: data.mean: " and the cause. The place is
/// left out if the key was not given.
ConfigError key_error(const Job& job, std::string_view key, std::string_view cause);
/// Every key of a job file: name, default, meaning and what it accepts. For --help. A line each where columns leave
/// room for a table, otherwise name and default above the text.
std::string schema_help(int columns = kAnyWidth);
/// All keys with their values, in order; parse_job of it gives the same job.
/// @throws ConfigError  a path has bytes that no job file holds
std::string to_yaml(const Job& job);

/// Place of this key in the job, as messages begin: "mnist.yaml:7:3: "; "" if it is not given.
std::string place_of(const Job& job, std::string_view key);

// Runs that leave a trail (trainer/checkpoint/trail.hpp).

/// A trail is a promise that others get the same numbers, which only exact sums keep.
inline bool keeps_trail(const Job& job) {
  return job.run.trail && job.parallel.determinism == Determinism::kWorld;
}

// Meaning of ranks and samples to a job: each rank's batch, its cost, and the possible numbers of
// ranks.

/// The job on so many ranks: with data.per_rank_batch, data.global_batch is that times the ranks.
/// @throws ConfigError  data.global_batch was given, too, and is another; or it would be beyond 10^9; or check_rates()
///                      refuses it. The message says its place and the cure
Job for_ranks(Job job, int ranks);

/// How a run may go on when some of its ranks or hosts are lost.
struct RestartRule {
  bool any_ranks;     ///< false: the same number always comes out, others may be refused
  bool one_host;      ///< all ranks on one
  bool same_weights;  ///< as if nothing had been lost, bit for bit
};
RestartRule restart_rule(const Job& job);

/// "lockstep train runs/mnist/job.yaml": goes on with a run, however its first command began it.
std::string train_command(const std::string& run_dir);
/// Names the command that goes on with a run of this job: "the same command", or train_command(). That is where
/// run.resume does not take the newest checkpoint, so that the same command would begin where it began.
std::string way_to_go_on(const Job& job);

/// "run the same command again: it goes on from the last checkpoint, on any number of ranks"
std::string restart_advice(const Job& job, int ranks);

/// Remarks on a job's batches, one line each. They name one larger than the set, padded grains, and
/// micro-batches that are not whole grains.
/// @param train_samples  of the job's set
/// @param on_gpu         there nothing is padded
std::vector<std::string> batch_remarks(const Job& job, std::int64_t train_samples, bool on_gpu);

}  // namespace lockstep
