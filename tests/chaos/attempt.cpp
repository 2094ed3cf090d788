// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/attempt.hpp"

#include "tests/chaos/campaign.hpp"
#include "tests/chaos/moment.hpp"
#include "tests/support/prelude.hpp"

#include <fmt/ranges.h>

namespace lockstep::chaos {

namespace {

constexpr std::chrono::minutes kPatience{2};
constexpr std::chrono::seconds kOrphansMayLive{20};
constexpr std::chrono::seconds kLauncherMayLinger{15};  // mpirun takes about two to end

std::string log_path(const std::string& run_dir) {
  return run_dir + "/log/rank-0.log";
}

bool slurm_job_exists(const std::string& name) {
  return !testing::run_shell("squeue -h -n " + name).out.empty();
}

}  // namespace

Attempt::Attempt(const ChaosJob& job, const Placement& placement, const LifeDirectories& directories)
    : job_(job),
      placement_(placement),
      run_dir_(directories.run()),
      out_path_(directories.home + "/out"),
      err_path_(directories.home + "/err"),
      rank_name_(std::filesystem::path(job.program()).filename()),
      before_(look_at(run_dir_)),
      log_before_(testing::read_text(log_path(run_dir_)).size()),
      process_(job.train_command(placement, run_dir_),
               launcher_environment(directories.temporary(), directories.shared_memory), out_path_,
               err_path_) {}

std::string Attempt::log() const {
  const auto all = testing::read_text(log_path(run_dir_));
  return all.substr(std::min(log_before_, all.size()));
}

std::optional<std::int64_t> Attempt::step_after(const std::string& words) const {
  const auto said = out() + log();
  const auto at = said.find(words);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(said.c_str() + at + words.size(), nullptr, 10);
}

int Attempt::wait_after_blow() {
  if (placement_.start == Placement::Start::kSlurm) return wait();
  Patience patience(kLauncherMayLinger);
  while (!process_.wait(std::chrono::milliseconds(50))) {
    if (!ranks().empty()) patience = Patience(kLauncherMayLinger);
    if (!patience.is_exhausted()) continue;
    launcher_hung_ = true;
    process_.clear_away();
  }
  return wait();
}

int Attempt::wait() {
  std::int64_t step = last_logged_step(run_dir_);
  auto code = process_.wait(kPatience);
  while (!code) {
    const std::int64_t before = std::exchange(step, last_logged_step(run_dir_));
    if (step == before) throw Violation("it has neither ended nor got any further in two minutes: it hangs");
    code = process_.wait(kPatience);
  }
  if (!process_.wait_until_gone(kOrphansMayLive)) {
    throw Violation(
        "the launcher has ended, but a rank is still alive 20 s later and holds the run directory");
  }
  if (placement_.start == Placement::Start::kSlurm) wait_for_slurm();
  return *code;
}

/// srun ends before its job does.
void Attempt::wait_for_slurm() const {
  const auto name = ChaosJob::slurm_name(run_dir_);
  for (Patience patience(kPatience); slurm_job_exists(name);) {
    if (patience.is_exhausted()) throw Violation("the Slurm job is still there after two minutes");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::string train_undisturbed(const ChaosJob& job, const LifeDirectories& directories) {
  Attempt attempt(job, {.start = Placement::Start::kAlone}, directories);
  if (attempt.wait() != 0) throw Violation("the undisturbed run failed:\n" + attempt.out() + attempt.err());
  return attempt.last_line();
}

}  // namespace lockstep::chaos
