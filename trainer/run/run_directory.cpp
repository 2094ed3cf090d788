// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Directory of a run. Files in the way are never overwritten, but moved aside under a name that says what they were.
#include "trainer/run/run_directory.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/step_trace.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <utility>

namespace lockstep {
namespace {

std::string metrics_path(const std::string& run_dir) {
  return run_dir + "/metrics.jsonl";
}

/// With the moment at which it is written down, by the clock that people set.
nlohmann::ordered_json stamped(nlohmann::ordered_json event) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  event["time"] =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(milliseconds / 1000)),
                  milliseconds % 1000);
  return event;
}

std::string trail_path(const std::string& run_dir) {
  return run_dir + "/" + kTrailFile;
}

std::string ranks_path(const std::string& run_dir) {
  return run_dir + "/" + kRankFile;
}

/// All levels, unlike Env::make_directory. Made once, before anything in it matters.
void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw IoError(fmt::format("{}: cannot be created: {}; choose another run.dir", path, error.message()));
}

bool is_file(Env& env, const std::string& path) {
  return env.entry(path).kind == EntryKind::kFile;
}

/// True if a run has written here: every start leaves its lock; a copy without it has checkpoints or records.
bool holds_a_run(Env& env, const std::string& path) {
  if (is_file(env, path + "/lock") || !list_checkpoints(env, path).empty()) return true;
  return is_file(env, path + "/job.yaml") &&
         (is_file(env, metrics_path(path)) || is_file(env, trail_path(path)));
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
  if (env.entry(path + "/job.yaml").kind != EntryKind::kNothing)
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

KeepPolicy keep_policy(const Job& job) {
  const KeepSection& keep = job.run.keep;
  return {.last = keep.last, .every_steps = keep.every_steps, .best = keep.best};
}

std::unique_ptr<RunLock> lock_directory(Env& env, const Job& job, bool wait) {
  refuse_directory_of_others(env, job.run.dir);
  make_directories(job.run.dir);
  // Not so long that the other ranks, who wait for this one, take it for lost.
  const double seconds = wait ? std::min(5.0, job.parallel.timeout_seconds / 2) : 0;
  const LockPatience patience{std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds)),
                              print_error};
  return std::make_unique<RunLock>(env, job.run.dir, job.model + " on " + job.data.set, patience);
}

/// Checkpoint that run.resume names.
FoundCheckpoint named_resume_point(Env& env, const std::string& path, const OnDamaged& on_damaged) {
  if (const NamedAverage average = split_average(env, path); !average.name.empty())
    throw ConfigError(
        fmt::format("run.resume: {} is an average of weights, which cannot be resumed; resume {}, or begin "
                    "another run with train.initial_weights={}",
                    path, average.path, path));
  try {
    return open_checkpoint(env, path, on_damaged);
  } catch (const MissingDataError&) {
    throw MissingDataError(
        fmt::format("run.resume: {} holds no checkpoint to go on from; name a run that has one or one of its "
                    "checkpoints, or "
                    "leave run.resume out: then a run without a checkpoint starts anew",
                    path));
  }
}

std::unique_ptr<AppendFile> open_log(const std::string& run_dir) {
  require_own(Env::posix(), run_dir + "/log", EntryKind::kDirectory);
  make_directories(run_dir + "/log");
  make_own(Env::posix(), run_dir + "/log/rank-0.log");
  return std::make_unique<AppendFile>(run_dir + "/log/rank-0.log");
}

}  // namespace

RunDirectory::RunDirectory(Env& env, const Job& job, bool wait)
    : env_(env),
      job_(job),
      path_(job.run.dir),
      lock_(lock_directory(env, job, wait)),
      checkpointer_(env, job.run.dir, keep_policy(job), [this] { sync_before_save(); }) {}

/// Syncs these files before the checkpoint that describes them is written.
void RunDirectory::sync_before_save() {
  lock_->require_same_directory();
  metrics_->sync();
  if (trail_) trail_->sync();
  if (ranks_) ranks_->sync();
}

std::optional<FoundCheckpoint> RunDirectory::resume_point() {
  std::optional<FoundCheckpoint> found;
  if (job_.run.starts_anew()) return found;
  const auto on_damaged = [](const std::string& damage) { print_error(damage); };
  if (job_.run.takes_newest()) {
    found = find_latest(env_, path_, on_damaged, &damaged_);
  } else {
    found = named_resume_point(env_, job_.run.resume, on_damaged);
  }
  if (found) require_same_job(found->state.facts.job, job_, found->path);
  return found;
}

void RunDirectory::open(std::int64_t step, bool evaluated, const CheckpointFacts& facts) {
  require_own(env_, path_ + "/" + kCheckpointsDirectory, EntryKind::kDirectory);
  remove_leftovers(env_, path_);
  if (step == 0) clear_for_a_new_run();
  keep_damaged_aside();
  move_later_checkpoints_aside(step);
  KnownCheckpoints known{.accuracy = {}, .good = {}, .replayed = facts.replayed};
  prune_checkpoints(env_, path_, keep_policy(job_), known);  // a kill may have come between a save and that
  best_accuracy_ = best_accuracy(env_, path_);
  make_own(env_, metrics_path(path_));
  const auto& noted = facts.metrics;
  const auto lost = noted ? lost_metrics(env_, metrics_path(path_), step, *noted) : std::nullopt;
  truncate_metrics(env_, metrics_path(path_), step, evaluated);
  remove_doubt(env_, path_);
  const std::string begun_as = first_line_of_job(env_, path_);
  const std::string yaml = (begun_as.empty() ? first_line_of_job(job_) : begun_as) + "\n" + to_yaml(job_);
  replace_file(env_, path_ + "/job.yaml", std::as_bytes(std::span(yaml)));
  metrics_ = std::make_unique<MetricsWriter>(env_, metrics_path(path_));
  log_ = open_log(path_);
  note({.state = "running", .step = step});
  if (!lost) return;
  print_error(*lost);
  write({{"event", "lost"}, {"step", step}, {"lines_noted", noted->lines}});
}

void RunDirectory::clear_for_a_new_run() {
  const bool interrupted_before_it_saved =
      job_.run.takes_newest() && damaged_.empty() && list_checkpoints(env_, path_).empty();
  if (interrupted_before_it_saved) {
    env_.remove_file(metrics_path(path_));
    env_.remove_file(trail_path(path_));
    env_.remove_file(ranks_path(path_));
    for (const std::string& name : env_.list(path_))
      if (is_event_file(name) && is_file(env_, path_ + "/" + name)) env_.remove_file(path_ + "/" + name);
  } else if (env_.entry(metrics_path(path_)).kind != EntryKind::kNothing ||
             env_.entry(trail_path(path_)).kind != EntryKind::kNothing ||
             !list_checkpoints(env_, path_).empty()) {
    move_previous_run_aside();
  }
}

/// previous-1, or the first number that is free, newly made.
std::string RunDirectory::make_previous() {
  int number = 1;
  while (env_.entry(fmt::format("{}/previous-{}", path_, number)).kind != EntryKind::kNothing) ++number;
  auto aside = fmt::format("{}/previous-{}", path_, number);
  env_.make_directory(aside);
  return aside;
}

/// Moves later checkpoints and their metrics aside where run.resume names an earlier one: they are work all
/// the same.
void RunDirectory::move_later_checkpoints_aside(std::int64_t step) {
  auto later = list_checkpoints(env_, path_);
  std::erase_if(later, [&](const CheckpointEntry& entry) { return entry.step <= step; });
  if (later.empty()) return;
  const auto aside = make_previous();
  const auto checkpoints = aside + "/" + kCheckpointsDirectory;
  env_.make_directory(checkpoints);
  for (const auto& of_run : {metrics_path, trail_path, ranks_path}) {
    if (env_.entry(of_run(path_)).kind == EntryKind::kFile)
      write_synced(env_, of_run(aside), env_.read(of_run(path_)));
  }
  for (const CheckpointEntry& entry : later)
    env_.rename(entry.path, checkpoints + entry.path.substr(entry.path.rfind('/')));
  for (const auto& directory : {checkpoints, aside, path_ + "/" + kCheckpointsDirectory, path_})
    env_.sync_directory(directory);
  print_error(fmt::format("{}: the checkpoints after step {} were moved there", checkpoints, step));
}

/// Moves aside what resume_point passed over; gone by now where a new run has moved everything aside.
void RunDirectory::keep_damaged_aside() {
  std::erase_if(damaged_,
                [&](const std::string& path) { return env_.entry(path).kind == EntryKind::kNothing; });
  set_aside_damaged(env_, path_, damaged_, [](const std::string& line) { print_error(line); });
}

void RunDirectory::move_previous_run_aside() {
  const auto aside = make_previous();
  for (const std::string name : {"checkpoints", "metrics.jsonl", kTrailFile, kRankFile, kDoubtFile,
                                 kStatusFile, "job.yaml", "report.html", kTraceFile}) {
    if (env_.entry(path_ + "/" + name).kind != EntryKind::kNothing)
      env_.rename(path_ + "/" + name, aside + "/" + name);
  }
  for (const std::string& name : env_.list(path_))
    if (is_event_file(name)) env_.rename(path_ + "/" + name, aside + "/" + name);
  env_.sync_directory(aside);
  env_.sync_directory(path_);
}

void RunDirectory::save(CheckpointState state) {
  try {
    checkpointer_.finish();
  } catch (const IoError& error) {
    if (job_.run.on_save_error != OnSaveError::kContinue) throw;
    print_error(fmt::format(
        "a checkpoint was not saved, going on without it (run.on_save_error: continue): {}", error.what()));
  }
  best_accuracy_ = std::max(best_accuracy_, state.facts.accuracy().value_or(-1));
  if (trail_) state.facts.trail = {trail_->position().records, hex(trail_->position().chain)};
  state.facts.metrics = metrics_->position();
  checkpointer_.save(std::move(state));
}

void RunDirectory::finish() {
  checkpointer_.finish();
  lock_->require_same_directory();  // it may have gone while the checkpoint was written
}

std::string RunDirectory::note_doubt(const CheckpointDoubt& doubt) {
  try {
    checkpointer_.finish();
  } catch (const Error& error) {
    print_error(error.what());
  }
  try {
    const auto all = list_checkpoints(env_, path_);
    if (all.empty()) return "Nothing was saved before: the same command begins anew";
    if (all.front().step <= doubt.sure_step)
      return fmt::format("The same command goes on from the checkpoint of step {}", all.front().step);
    lock_->require_same_directory();
    write_doubt(env_, path_, doubt);
    const auto sure = sure_checkpoints(env_, path_);
    return fmt::format("Checkpoints after step {} may be affected: {}", doubt.sure_step,
                       sure.empty()
                           ? "no other is left, and the same command refuses to go on; begin anew with "
                             "run.resume=never"
                           : fmt::format("the same command goes on from that of step {}", sure.front().step));
  } catch (const Error& error) {
    return fmt::format("Do not resume from a checkpoint after step {}; this could not be recorded: {}",
                       doubt.sure_step, error.what());
  }
}

/// To metrics or trail, which keep what they cannot write now.
void RunDirectory::append(auto& file, const auto& what) {
  const bool all_was_written = file.is_complete();
  try {
    file.write(what);
  } catch (const IoError& error) {
    if (job_.run.on_save_error != OnSaveError::kContinue) throw;
    if (!all_was_written) return;  // has been said
    print_error(fmt::format("{}; kept in memory for later (run.on_save_error: continue)", error.what()));
  }
}

/// Begins a file after those of earlier starts, whose events after `step` are void. The lines of that step
/// itself are written again. Where there are none, a new file gets all lines.
void RunDirectory::open_tensorboard(std::int64_t step) {
  if (!job_.run.tensorboard) return;
  try {
    const bool goes_on = std::ranges::any_of(env_.list(path_), is_event_file);
    events_.emplace(env_, path_);
    if (goes_on) events_->start_again_at(step);
    read_metrics(metrics_path(path_), [&](const MetricsEvent& event) {
      if (goes_on && event.integer("step").value_or(0) < step) return;
      events_->add_line(nlohmann::ordered_json::parse(event.line(), nullptr, /*allow_exceptions=*/false));
    });
  } catch (const Error& error) {
    give_up_tensorboard(error);
  }
}

void RunDirectory::to_tensorboard(const std::function<void(EventFile&)>& write) {
  if (!events_) return;
  try {
    write(*events_);
  } catch (const Error& error) {
    give_up_tensorboard(error);
  }
}

void RunDirectory::give_up_tensorboard(const Error& error) {
  events_.reset();
  print_error(fmt::format("warning: {}; the run goes on without TensorBoard's event file", error.what()));
}

void RunDirectory::write(const nlohmann::ordered_json& event) {
  const auto line = stamped(event);
  to_tensorboard([&](EventFile& events) { events.add_line(line); });
  append(*metrics_, line);
}

void RunDirectory::open_trail(TrailHead head, const RankStretch& ranks,
                              const std::optional<CheckpointTrail>& expected) {
  const std::int64_t step = ranks.from - 1;
  if (!keeps_trail(job_)) {
    cut_rank_file(env_, path_, ranks.from);
    return cut_trail(env_, path_, step);
  }
  std::optional<TrailPosition> position;
  if (expected) position = {expected->records, digest_of_hex(expected->sha256)};
  trail_ = std::make_unique<TrailFile>(env_, path_, std::move(head), step, position,
                                       [](const std::string& line) { print_error(line); });
  ranks_ = std::make_unique<RankFile>(env_, path_, ranks);
}

void RunDirectory::write_trail(std::span<const TrailRecord> records, std::span<const RankSums> of_ranks) {
  if (trail_) append(*trail_, records);
  if (ranks_ && !of_ranks.empty()) append(*ranks_, of_ranks);
}

void RunDirectory::log(const std::string& line) {
  using namespace std::chrono;
  const auto now = floor<milliseconds>(system_clock::now());
  try {
    log_->append(fmt::format("[{:%F %T}.{:03}] {}\n", fmt::localtime(system_clock::to_time_t(now)),
                             now.time_since_epoch().count() % 1000, printable_line(line)));
  } catch (const IoError& error) {
    if (!std::exchange(log_failed_, true))
      print_error(fmt::format("warning: {}; the run goes on without it", error.what()));
  }
}

void RunDirectory::note(const RunStatusNote& status) {
  if (log_ == nullptr) return;  // another run's directory, in which this job does not go on
  try {
    lock_->require_same_directory();
    write_status(env_, path_, status);
  } catch (const IoError& error) {
    print_error(fmt::format("warning: {}", error.what()));
  }
}

void RunDirectory::write_durably(const nlohmann::ordered_json& event) {
  const auto line = stamped(event);
  to_tensorboard([&](EventFile& events) { events.add_line(line); });
  metrics_->write(line);
  metrics_->sync();
  lock_->require_same_directory();
}

}  // namespace lockstep
