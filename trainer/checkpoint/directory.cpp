// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Listing, finding and removing the checkpoints of a run.
#include "trainer/checkpoint/directory.hpp"

#include "common/error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kRemovedPrefix = "removed-";

std::string checkpoints_of(const std::string& run_dir) {
  return run_dir + "/" + kCheckpointsDirectory;
}

/// The entries of a directory; none where it is not there.
std::vector<std::string> names_of_checkpoints(Env& env, const std::string& directory) {
  return read_patiently(
      env, [&] { return env.exists(directory) ? env.list(directory) : std::vector<std::string>(); });
}

std::string last_component(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Matches only names that our saves and removals give: .tmp-step-N and .tmp-removed-step-N. A further number
/// follows where the name was taken.
bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix)) return false;
  name.remove_prefix(std::string_view(kTemporaryPrefix).size());
  if (name.starts_with(kRemovedPrefix)) name.remove_prefix(kRemovedPrefix.size());
  while (!checkpoint_step(name)) {
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos || !parse_whole<std::uint64_t>(name.substr(dot + 1))) return false;
    name = name.substr(0, dot);
  }
  return true;
}

/// True for what is not needed any more: something temporary, or a checkpoint whose successor is good.
bool is_leftover(Env& env, const std::string& directory, const std::string& name) {
  if (is_temporary_name(name)) return true;
  if (!checkpoint_step(name) || !name.ends_with(kReplacedSuffix)) return false;
  const std::string successor = directory + "/" + name.substr(0, name.rfind('.'));
  return env.exists(successor) && verify_checkpoint(env, successor).empty();
}

/// The runs in a directory, by their paths; none where it cannot be read.
std::vector<std::string> runs_in(Env& env, const std::string& directory) {
  const auto look = [&] {
    std::vector<std::string> runs;
    for (const std::string& name : env.list(directory)) {
      std::string path = directory == "." ? name : fmt::format("{}/{}", directory, name);
      if (is_run(env, path)) runs.push_back(std::move(path));
    }
    return runs;
  };
  return or_if_unreadable(look, {});
}

/// "runs/a, runs/b"; the last few of many.
std::string some_of(const std::vector<std::string>& runs) {
  constexpr std::ptrdiff_t kMost = 6;
  const auto left_out = std::max<std::ptrdiff_t>(std::ssize(runs) - kMost, 0);
  return fmt::format("{}{}", fmt::join(runs.begin() + left_out, runs.end(), ", "),
                     left_out == 0 ? "" : fmt::format(" and {} more", left_out));
}

/// Suggests runs for a path that is no run: those in the same folder, or in runs/.
std::string runs_beside(Env& env, const std::string& path) {
  const std::size_t end = path.find_last_not_of('/'), slash = path.rfind('/', end);
  auto runs = runs_in(env, slash == path.npos || slash == 0 ? "." : path.substr(0, slash));
  if (runs.empty()) runs = runs_in(env, "runs");
  return runs.empty() ? "; 'lockstep train JOB.yaml' makes one and says where"
                      : "; there are " + some_of(runs);
}

/// One look at all checkpoints, newest first. Nothing, and `again`, if one of them went away meanwhile.
std::optional<FoundCheckpoint> look_for_latest(Env& env, const std::string& run_dir, bool* again,
                                               std::vector<std::string>* complaints,
                                               std::vector<std::string>* damaged, Weights accepted) {
  for (const CheckpointEntry& entry : sure_checkpoints(env, run_dir)) {
    try {
      return FoundCheckpoint{entry.path, load_checkpoint(env, entry.path, accepted)};
    } catch (const DataError& error) {
      complaints->push_back(fmt::format("{}; using the checkpoint before it", error.what()));
      damaged->push_back(entry.path);
    } catch (const MissingDataError& error) {
      if (*again) return std::nullopt;
      complaints->push_back(fmt::format("{}; using the checkpoint before it", error.what()));
    } catch (const IoError& error) {
      throw IoError(
          fmt::format("{} (tried again, in vain); nothing was removed. If it stays so, move {} away: the run "
                      "then goes on from the checkpoint before it",
                      error.what(), entry.path));
    }
  }
  *again = false;
  return std::nullopt;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("step-{:08}", step);
}

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  if (name.ends_with(kReplacedSuffix)) name.remove_suffix(std::string_view(kReplacedSuffix).size());
  const auto step = parse_whole<std::int64_t>(name);
  return step && *step >= 0 ? step : std::nullopt;
}

std::vector<CheckpointEntry> list_checkpoints(Env& env, const std::string& run_dir) {
  const std::string directory = checkpoints_of(run_dir);
  std::vector<CheckpointEntry> entries;
  for (const std::string& name : names_of_checkpoints(env, directory))
    if (const auto step = checkpoint_step(name))
      entries.push_back({*step, fmt::format("{}/{}", directory, name)});
  // Sorts the plain name first among equal steps: it is the newer one.
  std::ranges::sort(entries, {}, [](const auto& entry) { return std::pair(-entry.step, entry.path); });
  return entries;
}

std::optional<FoundCheckpoint> find_latest(Env& env, const std::string& run_dir, const OnDamaged& on_damaged,
                                           std::vector<std::string>* damaged, Weights accepted) {
  const std::string in_doubt = require_sure_checkpoint(env, run_dir);
  constexpr int kLooks = 20;  // a run that prunes saves in between; a link to nowhere stays as it is
  std::vector<std::string> complaints, passed_over;
  std::optional<FoundCheckpoint> found;
  for (int look = 1; look <= kLooks; ++look) {
    complaints.clear();
    passed_over.clear();
    bool again = look < kLooks;
    found = look_for_latest(env, run_dir, &again, &complaints, &passed_over, accepted);
    if (found || !again) break;
    env.pause(std::chrono::milliseconds(10));
  }
  if (!in_doubt.empty()) on_damaged(in_doubt);
  for (const std::string& complaint : complaints) on_damaged(complaint);
  if (damaged != nullptr) *damaged = std::move(passed_over);
  return found;
}

FoundCheckpoint open_checkpoint(Env& env, const std::string& given, const OnDamaged& on_damaged,
                                Weights accepted) {
  if (const NamedAverage average = split_average(env, given); !average.name.empty()) {
    FoundCheckpoint found = open_checkpoint(env, average.path, on_damaged, accepted);
    take_average(found.state, average.name, found.path);
    const std::string wrong =
        accepted == Weights::kAny ? "" : unusable_weights(found.state.facts.tensors(), found.state.weights);
    if (!wrong.empty()) throw DataError(fmt::format("{}@{}: {}", found.path, average.name, wrong));
    found.path += "@" + average.name;
    return found;
  }
  const std::string path = named_checkpoint(env, given);
  if (is_checkpoint(env, path)) return {path, load_checkpoint(env, path, accepted)};
  std::vector<std::string> damaged;
  if (auto found = find_latest(env, path, on_damaged, &damaged, accepted)) return std::move(*found);
  if (!damaged.empty())
    throw DataError(
        fmt::format("{}: holds no good checkpoint; {} damaged", path,
                    damaged.size() == 1 ? "its only one is" : fmt::format("all {} are", damaged.size())));
  throw MissingDataError(why_no_checkpoint(env, path));
}

bool is_file(Env& env, const std::string& path) {
  return read_patiently(env, [&] { return env.entry(path).kind; }) == EntryKind::kFile;
}

bool is_checkpoint(Env& env, const std::string& path) {
  return read_patiently(
      env, [&] { return env.exists(path + "/" + kManifestFile) || env.exists(path + "/" + kModelFile); });
}

bool is_run(Env& env, const std::string& path) {
  return env.exists(path + "/job.yaml") &&
         (env.exists(path + "/metrics.jsonl") || env.exists(checkpoints_of(path)));
}

std::string why_no_run(Env& env, const std::string& path) {
  if (!env.exists(path))
    return fmt::format("{}: there is no such run or checkpoint{}", path, runs_beside(env, path));
  if (env.entry(path).kind == EntryKind::kFile)
    return fmt::format("{}: is a file; give the directory of a run{}", path, runs_beside(env, path));
  if (const auto runs = runs_in(env, path); !runs.empty())
    return fmt::format("{}: is not a run, but holds some; say which: {}", path, some_of(runs));
  return fmt::format("{}: is not a run, which has job.yaml and checkpoints{}", path, runs_beside(env, path));
}

std::string why_no_checkpoint(Env& env, const std::string& path) {
  if (!is_run(env, path)) return why_no_run(env, path);
  return fmt::format(
      "{}: this run holds no good checkpoint; train it further to get one, or choose another run", path);
}

void set_aside_damaged(Env& env, const std::string& run_dir, const std::vector<std::string>& paths,
                       const std::function<void(const std::string&)>& say) {
  for (const std::string& path : paths) {
    const std::string aside = free_name(env, path + kDamagedSuffix, "-");
    env.rename(path, aside);
    say(fmt::format("{}: kept as {}; delete it when it is not needed any more", path, last_component(aside)));
  }
  if (!paths.empty()) env.sync_directory(checkpoints_of(run_dir));
}

void remove_checkpoints(Env& env, const std::string& run_dir, const std::vector<std::string>& paths) {
  if (paths.empty()) return;
  std::vector<std::string> condemned;
  for (const std::string& path : paths) {
    condemned.push_back(free_name(env, fmt::format("{}/{}{}{}", checkpoints_of(run_dir), kTemporaryPrefix,
                                                   kRemovedPrefix, last_component(path))));
    env.rename(path, condemned.back());
  }
  env.sync_directory(checkpoints_of(run_dir));
  for (const std::string& path : condemned) env.remove_directory(path, checkpoint_files());
}

bool is_own_checkpoint(Env& env, const std::string& path) {
  if (read_patiently(env, [&] { return env.entry(path); }).kind != EntryKind::kDirectory) return false;
  const auto names = read_patiently(env, [&] { return env.list(path); });
  const auto files = checkpoint_files();
  return std::ranges::all_of(names,
                             [&](const auto& name) { return std::ranges::find(files, name) != files.end(); });
}

void remove_leftovers(Env& env, const std::string& run_dir) {
  const std::string directory = checkpoints_of(run_dir);
  for (const std::string& name : names_of_checkpoints(env, directory)) {
    const std::string path = fmt::format("{}/{}", directory, name);
    if (env.entry(path).kind == EntryKind::kDirectory && is_leftover(env, directory, name))
      env.remove_directory(path, checkpoint_files());
  }
}

std::span<const std::string> checkpoint_files() {
  static const std::array<std::string, 3> names = {kModelFile, kOptimizerFile, kManifestFile};
  return names;
}

}  // namespace lockstep
