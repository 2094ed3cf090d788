// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The signals that ask for a stop, and how a run must end after them. Exit code 75 only with a checkpoint of
/// that very stop.
#include "tests/chaos/attempt.hpp"
#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::chaos {

namespace {

// One to three signals in a row, and whom they go to.

constexpr const char* kScancel = "scancel";  // Slurm's own way of ending a job
constexpr int kLeftBehind = 128;             // and the signal

struct SentSignal {
  enum class Target { kMpirun, kTimeout, kOneProcess, kSlurm };

  std::string name;  ///< "SIGTERM"
  int number = 0;
  Target target = Target::kOneProcess;
  std::chrono::milliseconds after{0};  ///< since the one before

  std::string describe() const {
    static const char* const names[] = {"to the launcher", "to timeout", "to one process", "through Slurm"};
    const auto pause = after.count() > 0 ? fmt::format("{} ms later ", after.count()) : "";
    return fmt::format("{}{} {}", pause, name, names[static_cast<int>(target)]);
  }
};
using Target = SentSignal::Target;

struct SignalSeries {
  std::vector<SentSignal> sent;
  bool announced = false;  ///< rank 0 had spoken before the first: all ranks were catching signals by then
  std::int64_t step = 0;   ///< the last one logged then

  /// A launcher was told to end itself, or Slurm to end the job. Then it may kill ranks, and its exit code says
  /// nothing about them. So it is if a signal came to it when it had nothing left to pass it to, and ended it.
  bool ends_launcher(int exit_code) const {
    return std::ranges::any_of(sent, [&](const SentSignal& signal) {
      const bool ends = signal.number == SIGTERM || signal.number == SIGINT || signal.number == SIGHUP;
      return signal.target != Target::kOneProcess && (ends || exit_code == kLeftBehind + signal.number);
    });
  }
  std::string describe() const {
    std::string text = fmt::format("at step {}", step);
    for (const auto& signal : sent) text += ", " + signal.describe();
    return text;
  }
};

using Named = std::pair<std::string, int>;

const std::vector<Named>& signals() {
  static const std::vector<Named> all = {{"SIGTERM", SIGTERM},
                                         {"SIGINT", SIGINT},
                                         {"SIGHUP", SIGHUP},
                                         {"SIGUSR1", SIGUSR1},
                                         {"SIGUSR2", SIGUSR2}};
  return all;
}

/// GNU timeout hands on no other.
const std::vector<Named>& signals_for_timeout() {
  static const std::vector<Named> three(signals().begin(), signals().begin() + 3);
  return three;
}

/// Half of them so close that the first stop is still under way, the others up to two seconds later.
std::chrono::milliseconds random_pause(Dice& dice) {
  return std::chrono::milliseconds(dice.percent(50) ? dice.between(0, 40) : dice.between(40, 2000));
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
    signal.target = Target::kMpirun;
  } else if (!ranks.empty()) {
    pid = dice.pick(ranks);
  }
  kill(pid, number);
  return signal;
}

/// The names of all signals that may be sent.
std::vector<std::string> signal_names() {
  std::vector<std::string> names;
  for (const auto& signal : signals()) names.push_back(signal.first);
  names.emplace_back(kScancel);
  return names;
}

/// Sends them, one after the other, as long as the attempt has not ended.
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

// How a run must end after them.

using Clock = std::chrono::steady_clock;

constexpr int kSaved = 75;
constexpr const char* kStopWords = "stopped on request at step ";
constexpr const char* kLeavingWords = "leaving now, without saving";
constexpr const char* kAlone = "alone";
constexpr const char* kThreads = "in one process, ranks as threads";
constexpr const char* kMpirun = "under mpirun";
constexpr const char* kSlurm = "under srun, in a job of Slurm's";
constexpr const char* kTimeout = "of these, behind GNU timeout";
constexpr const char* kAllStopped = "all ranks stopped at the same step, saved, exit 75";
constexpr const char* kLauncherToo = "the same, but the launcher, told to end, returned another";
constexpr const char* kDone = "it was already done";
constexpr const char* kUnheard = "the launcher had no rank to tell yet: exit 0";
constexpr const char* kEarly = "before the program could catch it: ended, nothing lost";
constexpr const char* kLeft = "told three times, it left unsaved and said so";
constexpr const char* kOutOfGrace = "the launcher killed its ranks before they had saved";

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

/// Exit code 0. The signals came too late to matter, or so early that a launcher had no process to pass them to.
const char* judge_done(const Attempt& attempt, const SignalSeries& series) {
  if (attempt.placement().has_launcher() && !series.announced) return kUnheard;
  if (std::max(series.step, attempt.before().newest_checkpoint) >= attempt.job().steps() / 2) return kDone;
  throw Violation("the signals were ignored: it ran to its end");
}

/// A launcher's own verdict does not count. Told to end by SIGTERM, SIGINT or SIGHUP, mpirun sends its ranks
/// SIGTERM after one second and SIGKILL after another, whatever they do, and returns 1, whatever they return.
const char* judge_ended_launcher(const Attempt& attempt, const SignalSeries& series) {
  if (attempt.out().find("weights sha256") != std::string::npos) return kDone;
  if (!says_stopped(attempt)) return series.announced ? kOutOfGrace : kEarly;
  check_stopped(attempt);
  return kLauncherToo;
}

/// Launchers that are told to end hide much, but not this.
void check_no_crash(const Attempt& attempt) {
  for (const char* words : {"exited on signal 6", "exited on signal 11", "Segmentation fault"}) {
    const bool of_a_rank = attempt.err().find(words) != std::string::npos;
    const bool of_mpirun = attempt.err().find("*** Process received signal ***") != std::string::npos;
    if (of_a_rank && !of_mpirun) throw Violation("a rank crashed:\n" + attempt.err());
  }
}

const char* judge(const Attempt& attempt, const SignalSeries& series, int exit_code) {
  check_no_crash(attempt);
  if (exit_code == 0) return judge_done(attempt, series);
  if (exit_code == kSaved) {
    check_stopped(attempt);
    return kAllStopped;
  }
  const bool said_so = attempt.err().find(kLeavingWords) != std::string::npos;
  if (said_so && exit_code > kLeftBehind && series.sent.size() >= 3) return kLeft;
  const bool launcher_ends = attempt.placement().has_launcher() && series.ends_launcher(exit_code);
  if (launcher_ends || attempt.launcher_hung()) return judge_ended_launcher(attempt, series);
  if (!series.announced) return kEarly;
  throw Violation(fmt::format("exit code {}, expected 75:\n{}", exit_code, attempt.err()));
}

const char* name_of(Placement::Start start) {
  switch (start) {
    case Placement::Start::kAlone:
      return kAlone;
    case Placement::Start::kThreads:
      return kThreads;
    case Placement::Start::kSlurm:
      return kSlurm;
    case Placement::Start::kMpirun:
      break;
  }
  return kMpirun;
}

std::string count_label(std::size_t count) {
  return count == 1 ? "one" : count == 2 ? "two, up to 2 s apart" : "three";
}

Placement place(Dice& dice, bool slurm) {
  using Start = Placement::Start;
  Placement placement = random_placement(dice);
  const auto choice = dice.between(1, 100);
  placement.start = choice <= 40   ? Start::kMpirun
                    : choice <= 60 ? Start::kThreads
                    : choice <= 80 ? Start::kAlone
                    : slurm        ? Start::kSlurm
                                   : Start::kThreads;
  if (placement.start == Start::kAlone) placement.ranks = 1;
  placement.under_timeout = placement.start != Start::kSlurm && dice.percent(25);
  return placement;
}

Ending strike_with_signals(Attempt& attempt, Dice& dice, Tally& tally, std::string& story) {
  const auto start = Clock::now();
  const auto series = send_signals(attempt, dice);
  story += ", " + series.describe();
  const int code = attempt.wait_after_blow();
  if (attempt.launcher_hung()) tally.add(kHung);
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  story += fmt::format(", exit code {} after {:.2f} s", code, elapsed.count());
  const auto* ended = judge(attempt, series, code);
  tally.add(name_of(attempt.placement().start));
  if (attempt.placement().under_timeout) tally.add(kTimeout);
  for (const auto& signal : series.sent) tally.add(signal.name);
  tally.add(count_label(series.sent.size()));
  tally.add(ended);
  return code == 0 ? Ending::kDone : Ending::kDisturbed;
}

}  // namespace

/// Its job is long enough that it is not over when mpirun passes SIGTERM on, a second late.
Disturbance by_signals(bool slurm) {
  return {.name = "signal",
          .epochs = 16,
          .keeps_checkpoint_set = false,
          .place = [slurm](Dice& dice) { return place(dice, slurm); },
          .sections = {{"started", {kAlone, kThreads, kMpirun, kSlurm, kTimeout}},
                       {"sent", signal_names()},
                       {"in a row", {count_label(1), count_label(2), count_label(3)}},
                       {"ended",
                        {kAllStopped, kLauncherToo, kDone, kUnheard, kEarly, kLeft, kOutOfGrace, kHung}}},
          .strike = strike_with_signals};
}

}  // namespace lockstep::chaos
