// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Choosing the checkpoints that go.
#include "trainer/checkpoint/retention.hpp"

#include "kernels/runtime/error.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace lockstep {
namespace {

std::optional<double> read_accuracy(Env& env, const CheckpointEntry& entry) {
  try {
    return load_manifest(env, entry.path).facts.test_accuracy;
  } catch (const Error&) {
    return std::nullopt;  // damaged: never the best
  }
}

std::optional<double> accuracy_of(Env& env, const CheckpointEntry& entry, KnownCheckpoints& known) {
  const auto found = known.accuracy.find(entry.path);
  if (found != known.accuracy.end()) return found->second;
  return known.accuracy[entry.path] = read_accuracy(env, entry);
}

bool is_good(Env& env, const CheckpointEntry& entry) {
  try {
    return verify_checkpoint(env, entry.path).empty();
  } catch (const Error&) {
    return false;
  }
}

void keep_best(Env& env, const std::vector<CheckpointEntry>& newest_first, KnownCheckpoints& known,
               std::set<std::string>* kept) {
  const CheckpointEntry* best = nullptr;
  double best_accuracy = -1;
  for (const CheckpointEntry& entry : newest_first) {
    const auto accuracy = accuracy_of(env, entry, known);
    if (!accuracy || *accuracy < best_accuracy) continue;
    best_accuracy = *accuracy;
    best = &entry;
  }
  if (best != nullptr) kept->insert(best->path);
}

}  // namespace

std::vector<std::string> select_for_removal(Env& env, const std::string& run_dir, const KeepPolicy& policy,
                                            KnownCheckpoints& known) {
  const std::vector<CheckpointEntry> entries = list_checkpoints(env, run_dir);
  const auto last = static_cast<std::size_t>(std::max<std::int64_t>(policy.last, 1));
  if (entries.size() <= last) return {};

  std::set<std::string> kept;
  for (std::size_t i = 0; i < last; ++i) kept.insert(entries[i].path);
  for (const CheckpointEntry& entry : entries)
    if (policy.every_steps > 0 && entry.step % policy.every_steps == 0) kept.insert(entry.path);
  if (policy.best) keep_best(env, entries, known, &kept);
  const auto newest_good = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.path == known.good || is_good(env, entry);
  });
  if (newest_good != entries.end()) kept.insert(newest_good->path);

  std::vector<std::string> removed;
  for (const CheckpointEntry& entry : entries)
    if (!kept.contains(entry.path)) removed.push_back(entry.path);
  std::reverse(removed.begin(), removed.end());
  return removed;
}

std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& policy,
                              KnownCheckpoints& known) {
  const std::vector<std::string> removed = select_for_removal(env, run_dir, policy, known);
  remove_checkpoints(env, run_dir, removed);
  for (const std::string& path : removed) known.accuracy.erase(path);
  return removed.size();
}

std::vector<std::string> select_for_removal(Env& env, const std::string& run_dir, const KeepPolicy& policy) {
  KnownCheckpoints nothing;
  return select_for_removal(env, run_dir, policy, nothing);
}

std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& policy) {
  KnownCheckpoints nothing;
  return prune_checkpoints(env, run_dir, policy, nothing);
}

}  // namespace lockstep
