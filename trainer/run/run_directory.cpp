// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Directory of a run. Files in the way are never overwritten, but moved aside under a name that says what they were.
#include "trainer/run/run_directory.hpp"

#include "common/error.hpp"
#include "common/output.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/step_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

namespace lockstep {
namespace {

constexpr const char* kMetricsFile = "metrics.jsonl";

/// All levels, unlike Env::make_directory. Made once, before anything in it matters.
void make_directories(Env& env, const std::string& path) {
  if (const std::error_code error = make_directory_and_parents(env, path))
    throw IoError(fmt::format("{}: cannot be created: {}; choose another run.dir", path, error.message()));
}

bool is_there(Env& env, const std::string& path) {
  return env.entry(path).kind != EntryKind::kNothing;
}

/// True if a run has written here: every start leaves its lock; a copy without it has checkpoints or records.
bool holds_a_run(Env& env, const std::string& path) {
  if (is_file(env, path + "/lock") || !list_checkpoints(env, path).empty()) return true;
  return is_file(env, path + "/job.yaml") &&
         (is_file(env, path + "/" + kMetricsFile) || is_file(env, path + "/" + kTrailFile));
}

/// In a directory where no run has begun: what would lie among a run's files. Job and model files may, and what begins
/// with a dot.
bool is_in_the_way(const std::string& name) {
  return !name.starts_with('.') && !name.ends_with(".yaml") && !name.ends_with(".yml") &&
         name != "lost+found";
}

/// A run removes, cuts and moves files by their names: not in a directory of others.
void refuse_directory_of_others(Env& env, const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none) || holds_a_run(env, path)) return;
  if (is_there(env, path + "/job.yaml"))
    throw ConfigError(
        fmt::format("run.dir: {0} holds a job.yaml that no run has written, and a run's own job.yaml would "
                    "take its place; choose another name, such as run.dir={0}/run, or give that file "
                    "another name",
                    path));
  auto names = env.list(path);
  std::erase_if(names, [](const std::string& name) { return !is_in_the_way(name); });
  if (names.empty()) return;
  constexpr std::size_t kShown = 3;
  const bool more = names.size() > kShown;
  names.resize(std::min(names.size(), kShown));
  throw ConfigError(fmt::format(
      "run.dir: {} holds other files and no run ({}{}); a run needs its own directory: choose another "
      "name, or an empty directory",
      path, fmt::join(names, ", "), more ? ", ..." : ""));
}

std::unique_ptr<RunLock> lock_directory(Env& env, const Job& job, bool wait) {
  refuse_directory_of_others(env, job.run.dir);
  make_directories(env, job.run.dir);
  // Not so long that the other ranks, who wait for this one, take it for lost.
  const double seconds = wait ? std::min(5.0, job.parallel.timeout_seconds / 2) : 0;
  const LockPatience patience{std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds)),
                              print_error};
  return std::make_unique<RunLock>(env, job.run.dir, job.model + " on " + job.data.set, patience);
}

/// True if that is the checkpoint of this step that lies in the run.
bool is_checkpoint_of(const std::string& run_dir, std::int64_t step, const std::string& path) {
  const auto own = fmt::format("{}/{}/{}", run_dir, kCheckpointsDirectory, checkpoint_name(step));
  std::error_code ignored;
  return std::filesystem::equivalent(path, own, ignored);
}

void make_log(const std::string& run_dir) {
  require_own(Env::posix(), run_dir + "/log", EntryKind::kDirectory);
  make_directories(Env::posix(), run_dir + "/log");
  make_own(Env::posix(), run_dir + "/log/rank-0.log");
}

/// previous-1, or the first number that is free, newly made.
std::string make_previous(Env& env, const std::string& path) {
  int number = 1;
  while (is_there(env, fmt::format("{}/previous-{}", path, number))) ++number;
  auto aside = fmt::format("{}/previous-{}", path, number);
  env.make_directory(aside);
  return aside;
}

/// Moves later checkpoints and their metrics aside where run.resume names an earlier one: they are work all
/// the same.
void move_later_checkpoints_aside(Env& env, const std::string& path, std::int64_t step) {
  auto later = list_checkpoints(env, path);
  std::erase_if(later, [&](const CheckpointEntry& entry) { return entry.step <= step; });
  if (later.empty()) return;
  const auto aside = make_previous(env, path);
  const auto checkpoints = aside + "/" + kCheckpointsDirectory;
  env.make_directory(checkpoints);
  for (const std::string name : {kMetricsFile, kTrailFile, kRankFile})
    if (is_file(env, path + "/" + name)) write_synced(env, aside + "/" + name, env.read(path + "/" + name));
  for (const CheckpointEntry& entry : later)
    env.rename(entry.path, checkpoints + entry.path.substr(entry.path.rfind('/')));
  for (const auto& directory : {checkpoints, aside, path + "/" + kCheckpointsDirectory, path})
    env.sync_directory(directory);
  print_error(fmt::format("{}: the checkpoints after step {} were moved there", checkpoints, step));
}

/// Loses nothing where it is cut short. Without job.yaml, which goes first, no start takes what is left for its own and
/// removes it. While metrics.jsonl is there, which goes last, the next one moves the rest.
void move_previous_run_aside(Env& env, const std::string& path) {
  const auto aside = make_previous(env, path);
  std::vector<std::string> names = {"job.yaml", "checkpoints", kTrailFile,    kRankFile,
                                    kDoubtFile, kStatusFile,   "report.html", kTraceFile};
  for (const std::string& name : env.list(path))
    if (is_event_file(name)) names.push_back(name);
  if (env.entry(path + "/log").kind == EntryKind::kDirectory) {
    env.make_directory(aside + "/log");
    names.emplace_back("log/rank-0.log");
    for (const std::string& file : verdict_files(env, path)) names.push_back(file.substr(path.size() + 1));
  }
  names.emplace_back(kMetricsFile);
  for (const std::string& name : names)
    if (is_there(env, path + "/" + name)) env.rename(path + "/" + name, aside + "/" + name);
  env.sync_directory(aside);
  env.sync_directory(path);
  print_error(fmt::format("{}: the run that was here before was moved there", aside));
}

bool is_run_of(Env& env, const std::string& path, const Job& job) {
  return or_if_unreadable([&] { return differences_from_run(env, path, job).empty(); }, false);
}

void clear_for_a_new_run(Env& env, const Job& job) {
  const std::string& path = job.run.dir;
  const bool has_checkpoints = !list_checkpoints(env, path).empty();
  if (job.run.takes_newest() && !has_checkpoints && is_run_of(env, path, job)) {  // it had saved nothing
    for (const char* name : {kMetricsFile, kTrailFile, kRankFile}) env.remove_file(path + "/" + name);
    for (const std::string& name : env.list(path))
      if (is_event_file(name) && is_file(env, path + "/" + name)) env.remove_file(path + "/" + name);
  } else if (has_checkpoints || is_there(env, path + "/" + kMetricsFile) ||
             is_there(env, path + "/" + kTrailFile)) {
    move_previous_run_aside(env, path);
  }
}

/// Writes job.yaml.
/// @param resume  its run.resume
void write_job(Env& env, const Job& job, const std::string& resume) {
  const std::string begun_as = first_line_of_job(env, job.run.dir);
  Job kept = job;
  kept.run.resume = resume;
  replace_file(env, job.run.dir + "/job.yaml",
               (begun_as.empty() ? first_line_of_job(job) : begun_as) + "\n" + to_yaml(kept));
}

}  // namespace

FoundCheckpoint named_resume_point(Env& env, const Job& job) {
  const std::string& path = job.run.resume;
  if (const NamedAverage average = split_average(env, path); !average.name.empty())
    throw ConfigError(
        fmt::format("run.resume: {} is an average of weights, which cannot be resumed; resume {}, or begin "
                    "another run with train.initial_weights={}",
                    path, average.path, path));
  try {
    return open_checkpoint(env, path, print_error);
  } catch (const MissingDataError&) {
    throw MissingDataError(
        fmt::format("run.resume: {} holds no checkpoint to go on from; name a run that has one or one of its "
                    "checkpoints, or leave run.resume out: then a run without a checkpoint starts anew",
                    path));
  }
}

std::string why_no_initial_weights(const Job& job) {
  const std::string& path = job.train.initial_weights;
  std::error_code ignored;
  try {
    const std::string found = named_checkpoint(Env::posix(), split_average(Env::posix(), path).path);
    if (path.empty() || std::filesystem::exists(found, ignored)) return "";
  } catch (const Error& error) {
    return fmt::format("train.initial_weights: {}", error.what());
  }
  return fmt::format("train.initial_weights is {}, which is not there", path);
}

RunDirectory::RunDirectory(Env& env, const Job& job, bool wait)
    : env_(env), job_(job), path_(job.run.dir), lock_(lock_directory(env, job, wait)) {}

std::optional<FoundCheckpoint> RunDirectory::resume_point() {
  if (job_.run.starts_anew()) return std::nullopt;
  auto found = job_.run.takes_newest() ? find_latest(env_, path_, print_error, &damaged_)
                                       : named_resume_point(env_, job_);
  if (!found) return found;
  CheckpointFacts& facts = found->state.facts;
  require_same_job(facts.job, job_, found->path);
  if (job_.run.takes_newest() || is_checkpoint_of(path_, facts.step, found->path)) return found;
  is_from_another_ = true;
  // Its run has these files. Where none is here none was lost; nor where they are of a start of this job that was killed
  // before it had saved, or of another job.
  const auto own = list_checkpoints(env_, path_);
  const bool has_saved = !own.empty() && own.back().step <= facts.step,
             is_same_job = is_run_of(env_, path_, job_);
  holds_another_job_ = is_there(env_, path_ + "/job.yaml") && !is_same_job;
  const bool is_begun = holds_another_job_ || (!has_saved && is_same_job);
  if (is_begun || !is_there(env_, path_ + "/" + kMetricsFile)) facts.metrics.reset();
  if (is_begun || !is_there(env_, path_ + "/" + kTrailFile)) facts.trail.reset();
  return found;
}

std::unique_ptr<RunWriter> RunDirectory::open(std::int64_t step, bool evaluated,
                                              const CheckpointFacts& facts) && {
  require_own(env_, path_ + "/" + kCheckpointsDirectory, EntryKind::kDirectory);
  remove_leftovers(env_, path_);
  if (step == 0)
    clear_for_a_new_run(env_, job_);
  else if (holds_another_job_)
    move_previous_run_aside(env_, path_);
  // Gone by now where a new run has moved everything aside.
  std::erase_if(damaged_, [&](const std::string& path) { return !is_there(env_, path); });
  set_aside_damaged(env_, path_, damaged_, print_error);
  move_later_checkpoints_aside(env_, path_, step);
  KnownCheckpoints known{.accuracy = {}, .good = {}, .replayed = facts.replayed};
  prune_checkpoints(env_, path_, keep_policy(job_), known);  // a kill may have come between a save and that
  const std::string metrics = path_ + "/" + kMetricsFile;
  make_own(env_, metrics);
  const auto& noted = facts.metrics;
  const auto lost = noted ? lost_metrics(env_, metrics, step, *noted) : std::nullopt;
  truncate_metrics(env_, metrics, step, evaluated);
  remove_doubt(env_, path_);
  // job.yaml goes on with the run: from its newest checkpoint. It has none yet if that of another was named.
  const auto goes_on = [&env = env_, &job = job_] { write_job(env, job, RunSection().resume); };
  if (is_from_another_) {
    write_job(env_, job_, job_.run.resume);
  } else {
    goes_on();
  }
  make_log(path_);
  auto files = std::make_unique<RunWriter>(env_, job_, std::move(lock_), step,
                                           is_from_another_ ? goes_on : std::function<void()>());
  if (!lost) return files;
  print_error(*lost);
  files->write({{"event", "lost"}, {"step", step}, {"lines_noted", noted->count}});
  return files;
}

}  // namespace lockstep
