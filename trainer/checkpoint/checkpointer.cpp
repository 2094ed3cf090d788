// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checkpoints of a run: written while training goes on, and which of them stay.
#include "common/error.hpp"
#include "common/machine.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace lockstep {

// One future is all there is to it: it holds the thread, and its error.

AsyncCheckpointer::AsyncCheckpointer(Env& env, std::string run_dir, const KeepPolicy& keep,
                                     std::function<void()> before_each, std::function<void()> after_each)
    : env_(env),
      run_dir_(std::move(run_dir)),
      keep_(keep),
      before_each_(std::move(before_each)),
      after_each_(std::move(after_each)) {}

AsyncCheckpointer::~AsyncCheckpointer() {
  if (in_flight_.valid()) in_flight_.wait();
}

void AsyncCheckpointer::save(CheckpointState state) {
  finish();
  const auto snapshot = std::make_shared<const CheckpointState>(std::move(state));
  try {
    in_flight_ = start_async([this, held = snapshot]() mutable {
      const auto written = std::move(held);  // the future keeps what is captured until the next save
      write(*written);
    });
  } catch (const DeviceError&) {  // no thread is to be had: then training waits for it
    std::packaged_task<void()> here([&] { write(*snapshot); });
    in_flight_ = here.get_future();
    here();
  }
}

void AsyncCheckpointer::finish() {
  if (in_flight_.valid()) in_flight_.get();
}

bool AsyncCheckpointer::finished_within(std::chrono::milliseconds limit) const {
  return !in_flight_.valid() || in_flight_.wait_for(limit) == std::future_status::ready;
}

void AsyncCheckpointer::write(const CheckpointState& state) {
  if (before_each_) before_each_();
  known_.good = save_checkpoint(env_, run_dir_, state);
  if (after_each_) after_each_();
  known_.accuracy[known_.good] = judged_accuracy(state.facts);
  known_.replayed = state.facts.replayed;
  prune_checkpoints(env_, run_dir_, keep_, known_);
}

// Choosing the checkpoints that go.

namespace {

JudgedAccuracy accuracy_of(Env& env, const CheckpointEntry& entry, KnownCheckpoints& known) {
  const auto found = known.accuracy.find(entry.path);
  if (found != known.accuracy.end()) return found->second;
  try {
    return known.accuracy[entry.path] = judged_accuracy(load_manifest(env, entry.path).facts);
  } catch (const DataError&) {
    return known.accuracy[entry.path] = {};  // damaged: never the best
  }
}

/// False: it is damaged. Nothing: it cannot be read at this moment.
std::optional<bool> is_good(Env& env, const CheckpointEntry& entry, const KnownCheckpoints& known) {
  if (entry.path == known.good) return true;
  return or_if_unreadable([&] { return std::optional(verify_checkpoint(env, entry.path).empty()); },
                          std::nullopt);
}

void keep_best(Env& env, const std::vector<CheckpointEntry>& newest_first, KnownCheckpoints& known,
               std::set<std::string>* kept) {
  std::vector<CheckpointSummary> judged;
  for (const CheckpointEntry& entry : newest_first) {
    try {
      const auto [accuracy, samples] = accuracy_of(env, entry, known);
      CheckpointSummary& summary = judged.emplace_back();
      summary.test_accuracy = accuracy;
      summary.test_samples = samples;
      summary.path = entry.path;
    } catch (const Error&) {
      kept->insert(entry.path);  // it may be the best
    }
  }
  if (const CheckpointSummary* const best = best_checkpoint(judged)) kept->insert(best->path);
}

/// Down to the newest one that is good, those that are not proved to be damaged.
void keep_newest_good(Env& env, const std::vector<CheckpointEntry>& newest_first,
                      const KnownCheckpoints& known, std::set<std::string>* kept) {
  for (const CheckpointEntry& entry : newest_first) {
    const std::optional<bool> good = is_good(env, entry, known);
    if (good != false) kept->insert(entry.path);
    if (good == true) return;
  }
}

/// Oldest first. Links to checkpoints of others, and those with foreign files, are not ours to prune or to count.
std::vector<std::string> select_for_removal(Env& env, const std::string& run_dir, const KeepPolicy& keep,
                                            KnownCheckpoints& known) {
  const auto last = static_cast<std::size_t>(std::max<std::int64_t>(keep.last, 1));
  auto entries = list_checkpoints(env, run_dir);
  if (entries.size() <= last) return {};
  std::erase_if(entries, [&](const CheckpointEntry& entry) {
    return entry.path != known.good && !is_own_checkpoint(env, entry.path);
  });
  if (entries.size() <= last) return {};

  std::set<std::string> kept;
  for (std::size_t i = 0; i < last; ++i) kept.insert(entries[i].path);
  for (const CheckpointEntry& entry : entries)
    if (keep.every_steps > 0 && entry.step % keep.every_steps == 0) kept.insert(entry.path);
  if (keep.best) keep_best(env, entries, known, &kept);
  const auto replayed = std::ranges::find_if(entries, [&](const CheckpointEntry& entry) {
    return known.replayed > 0 && entry.step <= known.replayed;
  });
  if (replayed != entries.end()) kept.insert(replayed->path);
  keep_newest_good(env, entries, known, &kept);

  std::vector<std::string> removed;
  for (const CheckpointEntry& entry : entries)
    if (!kept.contains(entry.path)) removed.push_back(entry.path);
  std::reverse(removed.begin(), removed.end());
  return removed;
}

}  // namespace

std::size_t prune_checkpoints(Env& env, const std::string& run_dir, const KeepPolicy& keep,
                              KnownCheckpoints& known) {
  const std::vector<std::string> removed = select_for_removal(env, run_dir, keep, known);
  remove_checkpoints(env, run_dir, removed);
  for (const std::string& path : removed) known.accuracy.erase(path);
  return removed.size();
}

JudgedAccuracy best_accuracy(Env& env, const std::string& run_dir) {
  const auto checkpoints = summarise_checkpoints(env, run_dir);
  const CheckpointSummary* const best = best_checkpoint(checkpoints);
  return best == nullptr ? JudgedAccuracy() : JudgedAccuracy{best->accuracy(), best->test_samples};
}

}  // namespace lockstep
