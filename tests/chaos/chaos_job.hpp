// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The job that the chaos tests disturb, and the ways to start it.
#pragma once

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/child_process.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

class Attempt;  // tests/chaos/attempt.hpp

/// Steps between checkpoints: no divisor of the epoch's 40 steps, so saves meet epochs at all distances.
inline constexpr std::int64_t kCheckpointInterval = 6;
inline constexpr std::int64_t kStepsInEpoch = 40;

/// Placement of a run's ranks. None of it may leave a trace in the result.
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
  int stages = 0;                        ///< pipeline stages; 0: every rank has the whole network
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
/// As random_stages, every second time on the emulated device.
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
  /// Name of a run in `run_dir` as a Slurm job.
  static std::string slurm_name(const std::string& run_dir);

 private:
  std::string program_, file_;
  std::int64_t epochs_;
  std::vector<std::string> settings_;
};

/// Environment for Open MPI: permission to run as root and on few cores. Its session files go to `temporary`
/// and shared memory to `shared_memory`, because a killed launcher removes nothing.
Environment launcher_environment(const std::string& temporary, const std::string& shared_memory);

// The ways to disturb a run.

/// How an attempt ended after a blow.
enum class Ending {
  kDisturbed,  ///< it is not done: start again
  kDone,       ///< it ended well in spite of the blow
};

/// Counted by all.
constexpr const char* kHung = "mpirun hung after all ranks were gone, and was killed";

struct Disturbance {
  std::string name;                  ///< its command
  std::int64_t epochs = 4;           ///< length of the job that is disturbed
  bool normalises = true;            ///< its network has layers that look at the whole global batch
  bool damages_records = false;      ///< between two starts, and files of others are put beside them
  bool keeps_checkpoint_set = true;  ///< that of the undisturbed run; a stop adds one of its own
  /// Placement of the run's next start.
  std::function<Placement(Dice& dice)> place = random_placement;
  /// Titles and labels of what will be counted.
  std::vector<std::pair<std::string, std::vector<std::string>>> sections = {};
  /// Strikes a running attempt, waits until all of it has ended and checks how. Adds to `story` what it did.
  /// @throws Violation
  std::function<Ending(Attempt& attempt, Dice& dice, Tally& tally, std::string& story)> strike = {};
};

/// Sends one to three of SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2, up to two seconds apart. They go to
/// the launcher, to GNU timeout, to one rank, or through Slurm's scancel.
/// @param slurm  a Slurm is running here ($SLURM_CONF)
Disturbance by_signals(bool slurm);

// Runs with one flipped bit each, and honest ones, that `lockstep prove` has to tell apart.

/// Prints the tally, or what went wrong and how to see it again. Returns 0, or 1 after a wrong verdict.
int run_prove_campaign(const Options& options);

/// Runs in which numbers of one rank become wrong, and honest ones. As above.
int run_wrong_rank_campaign(const Options& options);
/// Runs in which a rank's state goes wrong between saves, and which go on. As above.
int run_poison_campaign(const Options& options);
/// Runs in which numbers of one rank become wrong unseen, so that a proof has to name it. As above.
int run_prove_ranks_campaign(const Options& options);

// One false number in the files of a run, with all checksums made good.

/// Forgeries by name, for the tally.
std::vector<std::string> forgery_labels();

/// Forges something of the kind `label` in a run of chaos prove. @returns what, in words
std::string forge(const std::string& label, const std::string& run, Dice& dice);

}  // namespace lockstep::chaos
