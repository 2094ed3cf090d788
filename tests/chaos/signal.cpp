// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The four signals that ask for a stop, and how a run must end after one.
#include "tests/chaos/disturbance.hpp"
#include "tests/chaos/violation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::chaos {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSaved = 75;
constexpr const char* kStopWords = "stopped on request at step ";
constexpr const char* kToLauncher = "to the launcher";
constexpr const char* kToRank = "to one rank, or the only process";
constexpr const char* kStopped = "all ranks stopped at the same step, saved, exit 75";
constexpr const char* kLauncherToo = "the same, and mpirun, told to end itself, made it exit 1";
constexpr const char* kDone = "it was already done";
constexpr const char* kUnheard = "mpirun had no rank to tell yet: ran to its end, exit 0";
constexpr const char* kEarly = "before the program could catch it: ended, nothing lost";
constexpr const char* kHung = "mpirun hung after all ranks were gone, and was killed";
constexpr const char* kOutOfGrace = "mpirun killed its ranks before they had saved";

struct Blow {
  std::string name;
  int number = 0;
  bool to_launcher = false;
  bool announced = false;  ///< rank 0 had spoken: all ranks were catching signals by then
  std::int64_t step = 0;   ///< the last one logged then
};

const std::vector<std::pair<std::string, int>>& signals() {
  static const std::vector<std::pair<std::string, int>> all = {
      {"SIGTERM", SIGTERM}, {"SIGINT", SIGINT}, {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}};
  return all;
}

Blow send_signal(Attempt& attempt, Dice& dice) {
  const auto& [name, number] = dice.pick(signals());
  const auto ranks = attempt.ranks();
  Blow blow{name, number, dice.percent(60) || ranks.empty(), !attempt.out().empty(),
            last_logged_step(attempt.run_dir())};
  if (attempt.placement().thread_backend) blow.to_launcher = false;
  const auto target = blow.to_launcher || ranks.empty() ? attempt.process().pid() : dice.pick(ranks);
  kill(target, number);
  return blow;
}

const char* where(const Blow& blow) {
  return blow.to_launcher ? kToLauncher : kToRank;
}

bool says_stopped(const Attempt& attempt) {
  return attempt.step_after(kStopWords).has_value();
}

/// After a stop the run directory is at one step in everything.
void check_stopped(const Attempt& attempt) {
  const auto after = look_at(attempt.run_dir());
  const auto said = attempt.step_after(kStopWords);
  if (!said) throw Violation("exit code 75, but it does not say at which step it stopped");
  if (after.newest_checkpoint == *said && after.last_logged == *said && !after.saving) return;
  throw Violation(
      fmt::format("it says that it stopped at step {}, but the newest checkpoint is that of step {} and the "
                  "last step logged {}",
                  *said, after.newest_checkpoint, after.last_logged));
}

/// Exit code 0: the signal came too late to matter, or so early that mpirun had nobody to pass it to.
const char* judge_done(const Attempt& attempt, const Blow& blow) {
  if (blow.to_launcher && !blow.announced) return kUnheard;
  if (std::max(blow.step, attempt.before().newest_checkpoint) >= attempt.job().steps() / 2) return kDone;
  throw Violation(fmt::format("the signal at step {} was ignored: it ran to its end", blow.step));
}

/// mpirun's own verdict does not count: told to end by SIGTERM or SIGINT, it sends its ranks SIGTERM after
/// one second and SIGKILL after another, whatever they do, and returns 1, whatever they return.
const char* judge_ended_launcher(const Attempt& attempt, const Blow& blow) {
  if (attempt.out().find("weights sha256") != std::string::npos) return kDone;
  if (!says_stopped(attempt)) return blow.announced ? kOutOfGrace : kEarly;
  check_stopped(attempt);
  return kLauncherToo;
}

const char* judge(const Attempt& attempt, const Blow& blow, int exit_code) {
  if (exit_code == 0) return judge_done(attempt, blow);
  if (exit_code == kSaved) {
    check_stopped(attempt);
    return kStopped;
  }
  const bool told_to_end = blow.to_launcher && (blow.number == SIGTERM || blow.number == SIGINT);
  if (told_to_end || attempt.launcher_hung()) {
    return judge_ended_launcher(attempt, blow);
  }
  if (!blow.announced) return kEarly;
  throw Violation(fmt::format("exit code {}, expected 75", exit_code));
}

class Signal final : public Disturbance {
 public:
  void open_sections(Tally& tally) const override {
    std::vector<std::string> names;
    for (const auto& signal : signals()) names.push_back(signal.first);
    tally.section("sent", names);
    tally.section("where", {kToLauncher, kToRank});
    tally.section("ended", {kStopped, kLauncherToo, kDone, kUnheard, kEarly, kOutOfGrace, kHung});
  }
  /// Long enough that the run is not over when mpirun passes SIGTERM on, a second late.
  std::int64_t epochs() const override { return 16; }
  bool keeps_checkpoint_set() const override { return false; }

  Ending strike(Attempt& attempt, Dice& dice, Tally& tally, std::string& story) const override {
    const auto sent = Clock::now();
    const auto blow = send_signal(attempt, dice);
    story += fmt::format(", {} {} at step {}", blow.name, where(blow), blow.step);
    const int code = attempt.wait_after_blow();
    if (attempt.launcher_hung()) tally.add(kHung);
    const std::chrono::duration<double> elapsed = Clock::now() - sent;
    story += fmt::format(", exit code {} after {:.2f} s", code, elapsed.count());
    const auto* ended = judge(attempt, blow, code);
    tally.add(blow.name);
    tally.add(where(blow));
    tally.add(ended);
    return code == 0 ? Ending::kDone : Ending::kDisturbed;
  }
};

}  // namespace

std::unique_ptr<Disturbance> make_signal() {
  return std::make_unique<Signal>();
}

}  // namespace lockstep::chaos
