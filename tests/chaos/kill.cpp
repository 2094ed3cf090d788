// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SIGKILL, and what must hold for the run directory that it leaves.
#include "tests/chaos/attempt.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/record_damage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace lockstep::chaos {
namespace {

constexpr const char* kOneRank = "one rank";
constexpr const char* kAllRanks = "all ranks";
constexpr const char* kLauncher = "the launcher";
constexpr const char* kEverything = "launcher and ranks, or the only process";
constexpr const char* kStartUp = "before it had written anything";
constexpr const char* kSaving = "in the middle of a save";
constexpr const char* kPruning = "while old checkpoints were removed";
constexpr const char* kBeyond = "losing more than an interval, for a save was in flight";
constexpr const char* kTooLate = "too late: it ended well (not a round)";

/// Whom the dice choose; what is not there yet cannot be killed.
const char* choose(const Attempt& attempt, const std::vector<pid_t>& ranks, Dice& dice) {
  const auto choice = dice.between(1, 100);
  if (!attempt.placement().has_launcher()) return kEverything;
  if (ranks.empty()) return choice <= 50 ? kLauncher : kEverything;
  if (choice <= 40) return kOneRank;
  if (choice <= 60) return kAllRanks;
  return choice <= 80 ? kLauncher : kEverything;
}

const char* kill_something(Attempt& attempt, Dice& dice) {
  const auto ranks = attempt.ranks();
  const auto* kind = choose(attempt, ranks, dice);
  if (kind == kOneRank) kill(dice.pick(ranks), SIGKILL);
  if (kind == kAllRanks || kind == kEverything) {
    for (const auto rank : ranks) kill(rank, SIGKILL);
  }
  if (kind == kLauncher || kind == kEverything) kill(attempt.process().pid(), SIGKILL);
  return kind;
}

/// The promise "at most one interval is lost", to the step. A step is logged before its save starts, and a
/// save starts only when the one before it is on disk. So once step L is logged, the save of the last due
/// step before L has started (it may be in flight), and the one an interval earlier is complete.
void check_loss(const RunFacts& after) {
  const auto started =
      std::max<std::int64_t>(after.last_logged - 1, 0) / kCheckpointInterval * kCheckpointInterval;
  if (after.newest_checkpoint >= started - kCheckpointInterval) return;
  throw Violation(
      fmt::format("step {} was logged, but the newest checkpoint is that of step {}; it must be {} or later",
                  after.last_logged, after.newest_checkpoint, started - kCheckpointInterval));
}

class Kill : public Disturbance {
 public:
  void open_sections(Tally& tally) const override {
    tally.section("killed", {kOneRank, kAllRanks, kLauncher, kEverything, kTooLate, kHung});
    tally.section("when", {kStartUp, kSaving, kPruning, kBeyond});
  }
  std::int64_t epochs() const override { return 4; }
  bool keeps_checkpoint_set() const override { return true; }

  Ending strike(Attempt& attempt, Dice& dice, Tally& tally, std::string& story) const override {
    const auto* kind = kill_something(attempt, dice);
    story += fmt::format(", killed {}", kind);
    const int code = attempt.wait_after_blow();
    if (attempt.launcher_hung()) tally.add(kHung);
    if (code == 0) {
      tally.add(kTooLate);
      return Ending::kDone;
    }
    tally.add(kind);
    record(attempt, look_at(attempt.run_dir()), tally);
    return Ending::kDisturbed;
  }

 private:
  static void record(const Attempt& attempt, const RunFacts& after, Tally& tally) {
    check_loss(after);
    if (after.saving) tally.add(kSaving);
    if (after.pruning) tally.add(kPruning);
    if (after.metrics == attempt.before().metrics) {
      tally.add(kStartUp);
      return;
    }
    const auto lost = std::max<std::int64_t>(after.last_logged - after.newest_checkpoint, 0);
    tally.lost(lost);
    if (lost > kCheckpointInterval) tally.add(kBeyond);
  }
};

class Damage final : public Kill {
 public:
  void open_sections(Tally& tally) const override {
    Kill::open_sections(tally);
    tally.section("between two starts", {kMetricsLost, kTrailLost, kNothingLost, kForeign});
  }
  bool damages_records() const override { return true; }
};

class StageKill : public Kill {
 public:
  Placement place(Dice& dice) const override { return random_stages(dice); }
  bool normalises() const override { return false; }
};

/// The emulator takes some tenths of a second a step.
class DeviceKill final : public StageKill {
 public:
  Placement place(Dice& dice) const override { return random_stages_on_devices(dice); }
  std::int64_t epochs() const override { return 1; }
};

}  // namespace

std::unique_ptr<Disturbance> make_kill() {
  return std::make_unique<Kill>();
}

std::unique_ptr<Disturbance> make_damage() {
  return std::make_unique<Damage>();
}

std::unique_ptr<Disturbance> make_stage_kill() {
  return std::make_unique<StageKill>();
}

std::unique_ptr<Disturbance> make_device_kill() {
  return std::make_unique<DeviceKill>();
}

}  // namespace lockstep::chaos
