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

namespace {

std::int64_t count_earlier_runs(const std::string& run_dir) {
  std::int64_t count = 0;
  while (std::filesystem::exists(fmt::format("{}/previous-{}", run_dir, count + 1))) ++count;
  return count;
}

std::string last_line(const std::string& text) {
  return testing::Outcome{0, text, ""}.last_line();
}

}  // namespace

std::string train_undisturbed(const ChaosJob& job, const LifeDirectories& directories) {
  Attempt attempt(job, {.start = Placement::Start::kAlone}, directories);
  if (attempt.wait() != 0) throw Violation("the undisturbed run failed:\n" + attempt.out() + attempt.err());
  return last_line(attempt.out());
}

RestartedRun::RestartedRun(World& world, const LifeDirectories& directories, const Dice& dice,
                           std::string& story)
    : world_(world), directories_(directories), dice_(dice), story_(story), damage_(directories.run()) {}

void RestartedRun::run() {
  while (!attempt()) {
  }
}

/// One start. True when the run is done.
bool RestartedRun::attempt() {
  const bool strike = !dice_.percent(10) && world_.rounds.take();
  auto placement = world_.disturbance.place(dice_);
  if (damage_.is_owed_a_word()) placement.start = Placement::Start::kThreads;
  story_ = fmt::format("on {}, {}", placement.describe(), strike ? "disturbed" : "undisturbed");
  Attempt attempt(world_.job, placement, directories_);
  const auto ending = strike ? disturb(attempt) : let_finish(attempt);
  check_after(attempt, ending);
  damage_.check(attempt, world_.tally);
  if (ending == Ending::kDisturbed && world_.disturbance.damages_records)
    damage_.strike(dice_, world_.tally, story_);
  if (world_.tell) world_.tell(story_);
  if (ending == Ending::kDone) compare(attempt);
  return ending == Ending::kDone;
}

Ending RestartedRun::disturb(Attempt& attempt) {
  const auto moment = random_moment(dice_, attempt.before().newest_checkpoint);
  story_ += fmt::format(" {}", moment.describe());
  if (!await(moment, attempt.process(), attempt.run_dir())) {
    world_.rounds.give_back();
    return let_finish(attempt);
  }
  return world_.disturbance.strike(attempt, dice_, world_.tally, story_);
}

Ending RestartedRun::let_finish(Attempt& attempt) {
  const int code = attempt.wait();
  if (code == 0) return Ending::kDone;
  throw Violation(fmt::format("nobody disturbed it, and it ended with exit code {}", code));
}

void RestartedRun::check_after(const Attempt& attempt, Ending ending) {
  const auto after = look_at(attempt.run_dir());
  check_resume(attempt, after);
  if (after.newest_checkpoint > 0) verify_checkpoints();
  if (ending == Ending::kDone && (after.saving || after.pruning)) {
    throw Violation("it is done, but a temporary directory is left in checkpoints/");
  }
}

/// The run went on from the newest checkpoint that was there, and that one is not lost.
void RestartedRun::check_resume(const Attempt& attempt, const RunFacts& after) {
  const auto newest = attempt.before().newest_checkpoint;
  const auto resumed = attempt.step_after("going on from step ");
  if (resumed && *resumed != newest) {
    throw Violation(fmt::format("went on from step {}, but the newest checkpoint was {}", *resumed, newest));
  }
  if (attempt.err().find("checkpoint before it") != std::string::npos) {
    throw Violation("a checkpoint was damaged:\n" + attempt.err());
  }
  const auto earlier_runs = count_earlier_runs(attempt.run_dir());
  if (earlier_runs > std::exchange(earlier_runs_, earlier_runs) && newest > 0) {
    throw Violation(
        fmt::format("started from the beginning although there was a checkpoint of step {}", newest));
  }
  if (after.newest_checkpoint < newest) {
    throw Violation(
        fmt::format("the newest checkpoint was {}, now it is {}", newest, after.newest_checkpoint));
  }
  if (!resumed) return;
  world_.tally.add(kResumes);
  if (std::exchange(last_ranks_, attempt.placement().ranks) != attempt.placement().ranks)
    world_.tally.add(kOtherRanks);
}

/// Every checkpoint under a final name is whole, whatever happened.
void RestartedRun::verify_checkpoints() {
  const auto report = directories_.home + "/verify";
  ChildProcess verify({world_.job.program(), "verify", directories_.run()}, {}, report, report + ".err");
  const auto code = verify.wait(std::chrono::minutes(1));
  if (code && *code == 0) return;
  throw Violation("a damaged checkpoint has its final name:\n" + testing::read_text(report) +
                  testing::read_text(report + ".err"));
}

/// run.keep is applied behind each save. After a kill between the last save and that, nothing is saved any
/// more, and what should have gone is still there.
void RestartedRun::compare_kept(const std::vector<std::string>& kept, std::vector<std::string>* differences) {
  const auto& expected = world_.reference.checkpoints();
  if (kept == expected) return;
  differences->push_back(
      fmt::format("kept checkpoints: {}, reference: {}", fmt::join(kept, " "), fmt::join(expected, " ")));
}

void RestartedRun::compare(const Attempt& attempt) {
  const WholeRecords whole{.metrics = damage_.is_whole("metrics.jsonl"),
                           .trail = damage_.is_whole("trail.bin")};
  const Result result(attempt.run_dir(), world_.job.steps(), whole);
  auto differences = result.differences_from(world_.reference, whole);
  if (world_.disturbance.keeps_checkpoint_set) compare_kept(result.checkpoints(), &differences);
  if (last_line(attempt.out()) != world_.reference_hash) {
    differences.push_back("the last line of output is not '" + world_.reference_hash + "':\n" +
                          attempt.out());
  }
  if (!differences.empty()) {
    throw Violation(fmt::format("differs from the undisturbed run\n  {}", fmt::join(differences, "\n  ")));
  }
  world_.tally.add(kRunsCompared);
}

}  // namespace lockstep::chaos
