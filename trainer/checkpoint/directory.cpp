// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Listing, finding and removing the checkpoints of a run.
#include "trainer/checkpoint/directory.hpp"

#include "kernels/runtime/error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::string_view kStepPrefix = "step-";

std::string checkpoints_of(const std::string& run_dir) {
  return run_dir + "/" + kCheckpointsDirectory;
}

std::string last_component(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// True for what is not needed any more: something temporary, or a checkpoint whose successor is good.
bool is_leftover(Env& env, const std::string& directory, const std::string& name) {
  if (name.starts_with(kTemporaryPrefix)) return true;
  if (!checkpoint_step(name) || !name.ends_with(kReplacedSuffix)) return false;
  const std::string successor = directory + "/" + name.substr(0, name.rfind('.'));
  return env.exists(successor) && verify_checkpoint(env, successor).empty();
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
  if (!env.exists(directory)) return entries;
  for (const std::string& name : env.list(directory))
    if (const auto step = checkpoint_step(name))
      entries.push_back({*step, fmt::format("{}/{}", directory, name)});
  // Of two with the same step the plain name comes first: it is the newer one.
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.step != b.step ? a.step > b.step : a.path < b.path;
  });
  return entries;
}

std::optional<FoundCheckpoint> find_latest(Env& env, const std::string& run_dir,
                                           const std::function<void(const std::string&)>& on_damaged) {
  for (const CheckpointEntry& entry : list_checkpoints(env, run_dir)) {
    try {
      return FoundCheckpoint{entry.path, load_checkpoint(env, entry.path)};
    } catch (const Error& error) {
      on_damaged(fmt::format("{}; using the checkpoint before it", error.what()));
    }
  }
  return std::nullopt;
}

std::string resolve_checkpoint(Env& env, const std::string& path,
                               const std::function<void(const std::string&)>& on_damaged) {
  if (env.exists(path + "/" + kManifestFile) || env.exists(path + "/" + kModelFile)) return path;
  if (const auto found = find_latest(env, path, on_damaged)) return found->path;
  throw MissingDataError(fmt::format(
      "{}: holds no checkpoint; give a directory like RUN/checkpoints/step-00001200, or RUN itself", path));
}

void remove_checkpoints_after(Env& env, const std::string& run_dir, std::int64_t step) {
  std::vector<std::string> paths;
  for (const CheckpointEntry& entry : list_checkpoints(env, run_dir))
    if (entry.step > step) paths.push_back(entry.path);
  remove_checkpoints(env, run_dir, paths);
}

void remove_checkpoints(Env& env, const std::string& run_dir, const std::vector<std::string>& paths) {
  if (paths.empty()) return;
  std::vector<std::string> condemned;
  for (const std::string& path : paths) {
    condemned.push_back(checkpoints_of(run_dir) + "/" + kTemporaryPrefix + "removed-" + last_component(path));
    remove_tree(env, condemned.back());
    env.rename(path, condemned.back());
  }
  env.sync_directory(checkpoints_of(run_dir));
  for (const std::string& path : condemned) remove_tree(env, path);
}

void remove_leftovers(Env& env, const std::string& run_dir) {
  const std::string directory = checkpoints_of(run_dir);
  if (!env.exists(directory)) return;
  for (const std::string& name : env.list(directory))
    if (is_leftover(env, directory, name)) remove_tree(env, fmt::format("{}/{}", directory, name));
}

}  // namespace lockstep
