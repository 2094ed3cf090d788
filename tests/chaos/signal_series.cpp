// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/signal_series.hpp"

#include "tests/trainer/end_to_end/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace lockstep::chaos {
namespace {

using Target = SentSignal::Target;
using std::chrono::milliseconds;

constexpr const char* kScancel = "scancel";

using Named = std::pair<std::string, int>;

const std::vector<Named>& signals() {
  static const std::vector<Named> all = {{"SIGTERM", SIGTERM},
                                         {"SIGINT", SIGINT},
                                         {"SIGHUP", SIGHUP},
                                         {"SIGUSR1", SIGUSR1},
                                         {"SIGUSR2", SIGUSR2}};
  return all;
}

bool ends_a_launcher(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

/// GNU timeout hands on no other.
const std::vector<Named>& signals_for_timeout() {
  static const std::vector<Named> three(signals().begin(), signals().begin() + 3);
  return three;
}

/// Half of them so close that the first stop is still under way, the others up to two seconds later.
milliseconds random_pause(Dice& dice) {
  return milliseconds(dice.percent(50) ? dice.between(0, 40) : dice.between(40, 2000));
}

void send_by_slurm(const Attempt& attempt, const SentSignal& signal) {
  const auto option = signal.name == kScancel ? "" : "--signal=" + signal.name.substr(3) + " ";
  testing::run_shell("scancel " + option + "-n " + ChaosJob::slurm_name(attempt.run_dir()));
}

SentSignal send_one(Attempt& attempt, Dice& dice) {
  const auto ranks = attempt.ranks();
  const bool to_launcher = dice.percent(60);
  const auto& placement = attempt.placement();
  auto [name, number] = dice.pick(placement.under_timeout ? signals_for_timeout() : signals());
  SentSignal signal{name, number, Target::kOneProcess};
  if (placement.start == Placement::Start::kSlurm) {
    signal.target = Target::kSlurm;
    if (dice.percent(40)) signal.name = kScancel, signal.number = SIGTERM;
    send_by_slurm(attempt, signal);
    return signal;
  }
  auto pid = attempt.process().pid();
  if (placement.under_timeout) {
    signal.target = Target::kTimeout;
  } else if (placement.has_launcher() && (to_launcher || ranks.empty())) {
    signal.target = Target::kLauncher;
  } else if (!ranks.empty()) {
    pid = dice.pick(ranks);
  }
  kill(pid, number);
  return signal;
}

}  // namespace

std::string SentSignal::describe() const {
  static const char* const names[] = {"to the launcher", "to timeout", "to one process", "through Slurm"};
  const auto pause = after.count() > 0 ? fmt::format("{} ms later ", after.count()) : "";
  return fmt::format("{}{} {}", pause, name, names[static_cast<int>(target)]);
}

bool SignalSeries::ends_launcher() const {
  return std::any_of(sent.begin(), sent.end(), [](const SentSignal& signal) {
    return (signal.target != Target::kOneProcess && ends_a_launcher(signal.number));
  });
}

std::string SignalSeries::describe() const {
  std::string text = fmt::format("at step {}", step);
  for (const auto& signal : sent) text += ", " + signal.describe();
  return text;
}

std::vector<std::string> signal_names() {
  std::vector<std::string> names;
  for (const auto& signal : signals()) names.push_back(signal.first);
  names.emplace_back(kScancel);
  return names;
}

SignalSeries send_signals(Attempt& attempt, Dice& dice) {
  SignalSeries series{{}, !attempt.out().empty(), last_logged_step(attempt.run_dir())};
  const auto choice = dice.between(1, 100);
  const int count = choice <= 20 ? 1 : choice <= 65 ? 2 : 3;
  series.sent.push_back(send_one(attempt, dice));
  for (int i = 1; i < count; ++i) {
    const auto pause = random_pause(dice);
    if (attempt.process().wait(pause)) break;
    series.sent.push_back(send_one(attempt, dice));
    series.sent.back().after = pause;
  }
  return series;
}

}  // namespace lockstep::chaos
