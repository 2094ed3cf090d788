// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Listing, finding and removing the checkpoints of a run.
#include "trainer/checkpoint/directory.hpp"

#include "common/error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kRemovedPrefix = "removed-";

std::string checkpoints_of(const std::string& run_dir) {
  return run_dir + "/" + kCheckpointsDirectory;
}

std::string last_component(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// A name that only a save or a removal of ours gives: .tmp-step-N, .tmp-removed-step-N, with a number behind
/// it where that was taken.
bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix)) return false;
  name.remove_prefix(std::string_view(kTemporaryPrefix).size());
  if (name.starts_with(kRemovedPrefix)) name.remove_prefix(kRemovedPrefix.size());
  while (!checkpoint_step(std::string(name))) {
    const std::size_t dot = name.rfind('.');
    const bool number = dot != name.npos && dot + 1 < name.size() &&
                        name.find_first_not_of("0123456789", dot + 1) == name.npos;
    if (!number) return false;
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

/// One look at all checkpoints, newest first. Nothing, and `again`, if one of them went away meanwhile.
std::optional<FoundCheckpoint> look_for_latest(Env& env, const std::string& run_dir, bool* again,
                                               std::vector<std::string>* complaints,
                                               std::vector<std::string>* damaged, Weights accepted) {
  for (const CheckpointEntry& entry : list_checkpoints(env, run_dir)) {
    try {
      return FoundCheckpoint{entry.path, load_checkpoint(env, entry.path, accepted), {}};
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

std::optional<std::int64_t> checkpoint_step(const std::string& name) {
  std::string_view digits = name;
  if (!digits.starts_with(kStepPrefix)) return std::nullopt;
  digits.remove_prefix(kStepPrefix.size());
  if (digits.ends_with(kReplacedSuffix)) digits.remove_suffix(std::string_view(kReplacedSuffix).size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  return whole && step >= 0 ? std::optional(step) : std::nullopt;
}

std::vector<CheckpointEntry> list_checkpoints(Env& env, const std::string& run_dir) {
  const std::string directory = checkpoints_of(run_dir);
  std::vector<CheckpointEntry> entries;
  const auto names = read_patiently(
      env, [&] { return env.exists(directory) ? env.list(directory) : std::vector<std::string>(); });
  for (const std::string& name : names)
    if (const auto step = checkpoint_step(name))
      entries.push_back({*step, fmt::format("{}/{}", directory, name)});
  // Of two with the same step the plain name comes first: it is the newer one.
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.step != b.step ? a.step > b.step : a.path < b.path;
  });
  return entries;
}

std::optional<FoundCheckpoint> find_latest(Env& env, const std::string& run_dir, const OnDamaged& on_damaged,
                                           std::vector<std::string>* damaged, Weights accepted) {
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
  for (const std::string& complaint : complaints) on_damaged(complaint);
  if (damaged != nullptr) *damaged = passed_over;
  if (found) found->damaged = std::move(passed_over);
  return found;
}

FoundCheckpoint open_checkpoint(Env& env, const std::string& path, const OnDamaged& on_damaged,
                                Weights accepted) {
  const bool is_checkpoint = read_patiently(
      env, [&] { return env.exists(path + "/" + kManifestFile) || env.exists(path + "/" + kModelFile); });
  if (is_checkpoint) return {path, load_checkpoint(env, path, accepted), {}};
  std::vector<std::string> damaged;
  if (auto found = find_latest(env, path, on_damaged, &damaged, accepted)) return std::move(*found);
  if (!damaged.empty()) {
    throw DataError(fmt::format("{}: holds no good checkpoint; {} of its checkpoints {} damaged", path,
                                damaged.size(), damaged.size() == 1 ? "is" : "are"));
  }
  throw MissingDataError(fmt::format(
      "{}: holds no checkpoint; give a directory like RUN/checkpoints/step-00001200, or RUN itself", path));
}

std::string resolve_checkpoint(Env& env, const std::string& path, const OnDamaged& on_damaged) {
  return open_checkpoint(env, path, on_damaged).path;
}

void set_aside_damaged(Env& env, const std::string& run_dir, const std::vector<std::string>& paths,
                       const std::function<void(const std::string&)>& say) {
  for (const std::string& path : paths) {
    const std::string aside = free_name(env, path + kDamagedSuffix, "-");
    env.rename(path, aside);
    say(fmt::format("{}: kept as {}; delete it when nobody wants to look at it any more", path,
                    last_component(aside)));
  }
  if (!paths.empty()) env.sync_directory(checkpoints_of(run_dir));
}

std::vector<CheckpointEntry> checkpoints_after(Env& env, const std::string& run_dir, std::int64_t step) {
  std::vector<CheckpointEntry> entries = list_checkpoints(env, run_dir);
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step <= step; });
  return entries;
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
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(files.begin(), files.end(), name) != files.end();
  });
}

void remove_leftovers(Env& env, const std::string& run_dir) {
  const std::string directory = checkpoints_of(run_dir);
  const auto names = read_patiently(
      env, [&] { return env.exists(directory) ? env.list(directory) : std::vector<std::string>(); });
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", directory, name);
    if (env.entry(path).kind == EntryKind::kDirectory && is_leftover(env, directory, name))
      env.remove_directory(path, checkpoint_files());
  }
}

std::span<const std::string> checkpoint_files() {
  static const std::array<std::string, 3> names = {kModelFile, kOptimizerFile, kManifestFile};
  return names;
}

std::string free_name(Env& env, const std::string& path, const char* separator) {
  std::string name = path;
  for (int number = 2; env.entry(name).kind != EntryKind::kNothing; ++number)
    name = fmt::format("{}{}{}", path, separator, number);
  return name;
}

}  // namespace lockstep
