// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The four signals that ask for a stop, and how a run must end after one.
#include "tests/chaos/disturbance.hpp"
#include "tests/chaos/violation.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::chaos {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSaved = 75;
constexpr const char* kToLauncher = "to the launcher";
constexpr const char* kToRank = "to one rank";
constexpr const char* kStopped = "all ranks stopped at the same step, saved, exit 75";
constexpr const char* kDone = "it was already done, exit 0";
constexpr const char* kUnheard = "the launcher had no rank to tell yet: ran to its end, exit 0";
constexpr const char* kEarly = "before the program could catch it: ended with nothing lost";
constexpr const char* kOutOfGrace = "the launcher killed its ranks a second after its signal";

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

/// After exit code 75 the run directory is at one step in everything.
void check_stopped(const Attempt& attempt) {
  const auto after = look_at(attempt.run_dir());
  const auto said = attempt.step_after("stopped on request at step ");
  if (!said) throw Violation("exit code 75, but it does not say at which step it stopped");
  if (after.newest_checkpoint == *said && after.last_logged == *said && !after.saving) return;
  throw Violation(
      fmt::format("it says that it stopped at step {}, but the newest checkpoint is that of step {} and the "
                  "last step logged {}",
                  *said, after.newest_checkpoint, after.last_logged));
}

/// mpirun leaves its ranks one second after SIGTERM and SIGINT, which a busy machine may not grant.
bool is_out_of_grace(const Blow& blow, std::chrono::duration<double> elapsed) {
  const bool kills = blow.number == SIGTERM || blow.number == SIGINT;
  return blow.to_launcher && kills && elapsed > std::chrono::milliseconds(900);
}

/// Exit code 0: the signal came too late to matter, or too early to reach anybody.
const char* judge_done(const Blow& blow) {
  if (!blow.announced) return kUnheard;
  if (blow.step >= kStepsInRun / 2) return kDone;
  throw Violation(fmt::format("{} at step {} was ignored: it ran to its end", blow.name, blow.step));
}

const char* judge(const Attempt& attempt, const Blow& blow, int exit_code,
                  std::chrono::duration<double> elapsed) {
  if (exit_code == 0) return judge_done(blow);
  if (exit_code == kSaved) {
    check_stopped(attempt);
    return kStopped;
  }
  if (is_out_of_grace(blow, elapsed)) return kOutOfGrace;
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
    tally.section("ended", {kStopped, kDone, kUnheard, kEarly, kOutOfGrace});
  }
  bool keeps_checkpoint_set() const override { return false; }

  Ending strike(Attempt& attempt, Dice& dice, Tally& tally, std::string& story) const override {
    const auto sent = Clock::now();
    const auto blow = send_signal(attempt, dice);
    story += fmt::format(", {} {} at step {}", blow.name, where(blow), blow.step);
    const int code = attempt.wait();
    const std::chrono::duration<double> elapsed = Clock::now() - sent;
    story += fmt::format(", exit code {} after {:.2f} s", code, elapsed.count());
    const auto* ended = judge(attempt, blow, code, elapsed);
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
