// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/attempt.hpp"

#include "tests/chaos/patience.hpp"
#include "tests/chaos/violation.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace lockstep::chaos {
namespace {

constexpr std::chrono::minutes kPatience{2};
constexpr std::chrono::seconds kOrphansMayLive{20};
constexpr std::chrono::seconds kLauncherMayLinger{15};  // mpirun takes about two to end

}  // namespace

Attempt::Attempt(const ChaosJob& job, const Placement& placement, const LifeDirectories& directories)
    : job_(job),
      placement_(placement),
      run_dir_(directories.run()),
      out_path_(directories.home + "/out"),
      err_path_(directories.home + "/err"),
      rank_name_(std::filesystem::path(job.program()).filename()),
      before_(look_at(run_dir_)),
      process_(job.train_command(placement, run_dir_),
               launcher_environment(directories.temporary(), directories.shared_memory), out_path_,
               err_path_) {}

std::vector<pid_t> Attempt::ranks() const {
  return process_.members(rank_name_);
}

std::string Attempt::out() const {
  return testing::read_text(out_path_);
}

std::string Attempt::err() const {
  return testing::read_text(err_path_);
}

std::optional<std::int64_t> Attempt::step_after(const std::string& words) const {
  const auto said = out();
  const auto at = said.find(words);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(said.c_str() + at + words.size(), nullptr, 10);
}

int Attempt::wait_after_blow() {
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
  const auto code = process_.wait(kPatience);
  if (!code) throw Violation("it has not ended after two minutes: it hangs");
  if (!process_.wait_until_gone(kOrphansMayLive)) {
    throw Violation(
        "the launcher has ended, but a rank is still alive 20 s later and holds the run directory");
  }
  return *code;
}

}  // namespace lockstep::chaos
