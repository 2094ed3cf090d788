// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/chaos_job.hpp"

#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::chaos {
namespace {

/// Dropout, and in place of {} statistics of the global batch, or nothing.
constexpr const char* kModel =
    "layers:\n"
    "  - conv2d: {{out: 10, kernel: 5}}\n"
    "  - max_pool: 2\n"
    "{}"
    "  - relu\n"
    "  - conv2d: {{out: 20, kernel: 5}}\n"
    "  - dropout2d: 0.5\n"
    "  - max_pool: 2\n"
    "  - relu\n"
    "  - linear: 50\n"
    "{}"
    "  - relu\n"
    "  - linear: classes\n";

/// Job with two optimiser buffers, and a rate and a momentum of its own at each step. An uneven last batch
/// leaves ranks without work, and every step is in metrics.jsonl.
constexpr const char* kJob =
    "model: ./model.yaml\n"
    "data: {set: synthetic, train_samples: 2375, test_samples: 200, global_batch: 60}\n"
    "train: {seed: 7, optimizer: {kind: adam, lr: 0.005}, schedule: {kind: one_cycle, warmup_steps: 5}}\n"
    "parallel: {device: cpu, grain: 16, check_replicas_every_steps: 50}\n"
    "run: {checkpoint_every_steps: 6, log_every_steps: 1}\n";

}  // namespace

std::string Placement::describe() const {
  static const std::map<Start, std::string> names = {{Start::kMpirun, "under mpirun"},
                                                     {Start::kAlone, "alone"},
                                                     {Start::kThreads, "in one process"},
                                                     {Start::kSlurm, "under srun"}};
  return fmt::format("{} rank{} {}{}, {} thread{} each{}{}", ranks, ranks == 1 ? "" : "s", names.at(start),
                     under_timeout ? " behind timeout" : "", threads, threads == 1 ? "" : "s",
                     stages > 0 ? fmt::format(", {} stages", stages) : "",
                     emulated ? ", emulated device" : "");
}

Placement random_placement(Dice& dice) {
  Placement placement;
  placement.ranks = static_cast<int>(dice.between(1, 4));
  placement.threads = dice.percent(15) ? 2 : 1;
  if (dice.percent(15)) placement.start = Placement::Start::kThreads;
  return placement;
}

/// The job's four grains are work for four pipelines at most.
Placement random_stages(Dice& dice) {
  if (dice.percent(25)) return random_placement(dice);
  Placement placement;
  placement.stages = static_cast<int>(dice.between(2, 4));
  placement.ranks = placement.stages;
  if (placement.stages == 4 && dice.percent(50)) {
    placement.ranks = 2;
  } else if (placement.stages < 4 && dice.percent(40)) {
    placement.ranks *= 2;
  }
  if (dice.percent(25)) placement.start = Placement::Start::kThreads;
  return placement;
}

/// A device's ranks compute with one thread each.
Placement random_stages_on_devices(Dice& dice) {
  Placement placement = random_stages(dice);
  placement.emulated = dice.percent(50);
  if (placement.emulated) placement.threads = 1;
  return placement;
}

ChaosJob::ChaosJob(std::string program, const std::string& directory, std::int64_t epochs, bool normalises,
                   std::vector<std::string> settings)
    : program_(std::move(program)),
      file_(directory + "/job.yaml"),
      epochs_(epochs),
      settings_(std::move(settings)) {
  testing::write_text(directory + "/model.yaml",
                      fmt::format(kModel, normalises ? "  - batch_norm\n" : "",
                                  normalises ? "  - batch_norm: {momentum: 0.3}\n" : ""));
  testing::write_text(file_, kJob);
}

std::vector<std::string> ChaosJob::train_command(const Placement& placement,
                                                 const std::string& run_dir) const {
  std::vector<std::string> command;
  const auto ranks = std::to_string(placement.ranks);
  if (placement.under_timeout) command = {"timeout", "--preserve-status", "600"};
  const auto add = [&](const std::vector<std::string>& words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  using Start = Placement::Start;
  if (placement.start == Start::kMpirun) add({"mpirun", "--bind-to", "none", "-np", ranks});
  if (const int seconds = placement.launcher_kills_after_seconds; seconds > 0)
    add({"--mca", "odls_base_sigkill_timeout", std::to_string(seconds)});
  if (placement.start == Start::kSlurm) add({"srun", "--mpi=pmix", "-J", slurm_name(run_dir), "-n", ranks});
  command.insert(command.end(),
                 {program_, "train", file_, "run.dir=" + run_dir, "train.epochs=" + std::to_string(epochs_),
                  "parallel.threads=" + std::to_string(placement.threads)});
  add(settings_);
  if (placement.emulated) add({"parallel.device=emulated"});
  if (placement.stages > 0)
    add({"parallel.strategy=pipeline", "parallel.stages=" + std::to_string(placement.stages)});
  if (const int seconds = placement.timeout_seconds; seconds > 0)
    add({"parallel.timeout_seconds=" + std::to_string(seconds)});
  if (placement.start == Start::kThreads) add({"parallel.backend=thread", "parallel.ranks=" + ranks});
  return command;
}

std::string ChaosJob::slurm_name(const std::string& run_dir) {
  return fmt::format("chaos-{:x}", std::hash<std::string>{}(run_dir));
}

Environment launcher_environment(const std::string& temporary, const std::string& shared_memory) {
  return {"OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "OMPI_MCA_rmaps_base_oversubscribe=1",
          "OMPI_MCA_mpi_yield_when_idle=1",
          "OMPI_MCA_btl_vader_single_copy_mechanism=none",
          "OMPI_MCA_btl_vader_backing_directory=" + shared_memory,
          "TMPDIR=" + temporary};
}

}  // namespace lockstep::chaos
