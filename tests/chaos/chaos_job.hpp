// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The job that the chaos tests disturb, and the ways to start it.
#pragma once

#include "tests/chaos/child_process.hpp"
#include "tests/chaos/dice.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// Steps between checkpoints: no divisor of the epoch's 40 steps, so saves meet epochs at all distances.
inline constexpr std::int64_t kCheckpointInterval = 6;
inline constexpr std::int64_t kStepsInEpoch = 40;

/// Where a run is computed. None of it may leave a trace in the result.
struct Placement {
  enum class Start {
    kMpirun,
    kAlone,    ///< one rank, without a launcher
    kThreads,  ///< ranks are threads of one process, without a launcher
    kSlurm,    ///< srun, as a job of its own
  };

  int ranks = 1;
  int threads = 1;
  Start start = Start::kMpirun;
  int stages = 0;                        ///< of a pipeline; 0: every rank has the whole network
  bool emulated = false;                 ///< on the emulated device; otherwise on CPU cores
  bool under_timeout = false;            ///< all of it behind GNU timeout, which signals twice
  int timeout_seconds = 0;               ///< parallel.timeout_seconds; 0: as it is
  int launcher_kills_after_seconds = 0;  ///< mpirun's patience with ranks that it ends; 0: as it is, 1 s

  bool has_launcher() const { return start == Start::kMpirun || start == Start::kSlurm; }
  std::string describe() const;
};

/// 1 to 4 ranks, now and then with two threads each, now and then as threads of one process.
Placement random_placement(Dice& dice);
/// Most of the time a pipeline of 2 to 4 stages, interleaved, or once, or twice; sometimes as above.
Placement random_stages(Dice& dice);
/// The same, every second time on the emulated device.
Placement random_stages_on_devices(Dice& dice);

/// Files and settings shared by all runs of one test.
class ChaosJob {
 public:
  /// Writes job.yaml into `directory`. `program` is the path of lockstep.
  /// @param normalises  the network has batch_norm
  /// @param settings    KEY=VALUE, of all runs
  ChaosJob(std::string program, const std::string& directory, std::int64_t epochs, bool normalises,
           std::vector<std::string> settings = {});

  const std::string& program() const { return program_; }
  std::int64_t steps() const { return epochs_ * kStepsInEpoch; }
  /// The command line that trains in `run_dir`.
  std::vector<std::string> train_command(const Placement& placement, const std::string& run_dir) const;
  /// What a run in `run_dir` is called where it is a Slurm job.
  static std::string slurm_name(const std::string& run_dir);

 private:
  std::string program_, file_;
  std::int64_t epochs_;
  std::vector<std::string> settings_;
};

/// What Open MPI needs: permission to run as root and on few cores; its session files in `temporary` and
/// shared memory in `shared_memory`, because a killed launcher removes nothing.
Environment launcher_environment(const std::string& temporary, const std::string& shared_memory);

}  // namespace lockstep::chaos
