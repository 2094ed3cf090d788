// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/trial.hpp"

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/campaign.hpp"
#include "tests/chaos/moment.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <fmt/ranges.h>

namespace lockstep::chaos {
namespace {

using Kind = Blow::Kind;
using std::chrono::milliseconds;

constexpr std::chrono::minutes kStepsPatience{2};
constexpr std::int64_t kStepsToStrikeIn = 80;
/// Limit for naming a lost, stopped or disconnected rank.
constexpr double kNamedWithin = 5;
/// That it is back is said within so long, if the run lasts.
constexpr double kSaidWithin = 2;
/// Limit for the others to leave after a rank's death; a save under way is completed, in five seconds.
constexpr double kAtOnce = 2;
constexpr double kAtOnceWithSave = 5.5;
constexpr double kAfterDeadline = 2;
/// A verdict on a death needs less. A launcher that ends the others sooner than that is a matter of the machine.
constexpr double kLateEnoughForLauncher = 0.2;

void require(bool holds, const std::string& what) {
  if (!holds) throw Violation(what);
}

std::string listed(const std::set<int>& ranks) {
  return ranks.empty() ? "nobody" : fmt::format("{}", fmt::join(ranks, ", "));
}

class Trial {
 public:
  Trial(TrialWorld& world, const LifeDirectories& directories, Kind kind, const Dice& dice,
        std::string& story)
      : world_(world), directories_(directories), dice_(dice), story_(story) {
    placement_ = watched_placement(dice_, kind);
    blow_ = random_blow(dice_, kind, placement_.ranks, kStepsToStrikeIn);
    story_ = fmt::format("{}, timeout {} s: {}", placement_.describe(), placement_.timeout_seconds,
                         blow_.describe());
  }

  /// @throws Violation
  double run() {
    const auto start = Clock::now();
    Attempt attempt(blow_.is_survived() ? world_.finite : world_.endless, placement_, directories_);
    Seen seen;
    if (blow_.kind != Kind::kNone) {
      const auto pids = processes_at_moment(attempt);
      if (pids.empty()) {  // a campaign that is late finds a short run over: it was left alone
        blow_ = {};
        story_ += "; it was over";
      } else {
        saving_ = is_saving(attempt.run_dir());
        struck_ = Clock::now();
        strike(pids);
        seen = watch(attempt, pids);
      }
    }
    if (blow_.is_survived()) await_step(attempt, world_.finite.steps());
    const int code = blow_.is_survived() ? attempt.wait() : attempt.wait_after_blow();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    story_ += fmt::format("; exit code {} after {:.1f} s", code, seconds);
    if (attempt.launcher_hung()) world_.tally.counts().add(kLauncherHung);
    check(attempt, seen, code);
    return seconds;
  }

 private:
  using Clock = MachinePulse::Clock;

  /// When what was seen first, in seconds since the blow.
  struct Seen {
    std::optional<double> named, verdict, others_gone;
  };

  /// A slow machine is none that hangs: patience is with steps that do not come.
  void await_step(Attempt& attempt, std::int64_t step) const {
    std::int64_t last = -1;
    Patience patience(kStepsPatience);
    while (last < step && !attempt.process().wait(milliseconds(1))) {
      const auto now = last_logged_step(attempt.run_dir());
      if (now > last) patience = Patience(kStepsPatience);
      last = std::max(now, last);
      if (patience.is_exhausted())
        throw Violation(fmt::format("no step after {} for two minutes: it hangs", last));
    }
  }

  /// By rank; empty: it had come to its end.
  std::vector<pid_t> processes_at_moment(Attempt& attempt) const {
    const KillTime moment{KillTime::Kind::kStep, blow_.step, blow_.delay};
    await_step(attempt, blow_.step);
    std::vector<pid_t> pids;
    if (await(moment, attempt.process(), attempt.run_dir()))
      pids = processes_by_rank(attempt.ranks(), placement_.ranks);
    const bool may_be_over =
        blow_.is_survived() && last_logged_step(attempt.run_dir()) >= world_.finite.steps();
    require(!pids.empty() || may_be_over, "not all ranks are there:\n" + attempt.err());
    return pids;
  }

  void strike(const std::vector<pid_t>& pids) const {
    const int signal = blow_.kills() ? SIGKILL : SIGSTOP;
    kill(pids[static_cast<std::size_t>(blow_.victim)], signal);
    if (blow_.kind == Kind::kKillAnother) std::this_thread::sleep_for(blow_.pause);
    if (blow_.second >= 0) kill(pids[static_cast<std::size_t>(blow_.second)], SIGKILL);
    if (blow_.kind != Kind::kStopShortly) return;
    std::this_thread::sleep_for(blow_.pause);
    kill(pids[static_cast<std::size_t>(blow_.victim)], SIGCONT);
  }

  /// Until the others are gone, or the one that was stopped has been let go.
  Seen watch(Attempt& attempt, const std::vector<pid_t>& pids) {
    Seen seen;
    if (blow_.kind == Kind::kStopShortly) return seen;
    const pid_t victim = pids[static_cast<std::size_t>(blow_.victim)];
    for (Patience patience(std::chrono::seconds(placement_.timeout_seconds + 60)); !patience.is_exhausted();
         std::this_thread::sleep_for(milliseconds(5))) {
      const bool gone = others_are_gone(pids);
      const bool ended = attempt.process().exit_code().has_value();  // if true, err() below is complete
      const Said said = read_said(attempt.err());
      if (!seen.named && said.silent.contains(blow_.victim)) seen.named = since_blow();
      if (!seen.verdict && said.verdicts > 0) seen.verdict = since_blow();
      if (!seen.others_gone && gone) seen.others_gone = since_blow();
      if (blow_.kind == Kind::kStopAndGoOn && (seen.named || gone)) {  // gone: their run was over
        std::this_thread::sleep_for(blow_.pause);
        kill(victim, SIGCONT);
        return seen;
      }
      if (seen.others_gone && (seen.verdict || ended)) return seen;
    }
    throw Violation("ranks wait for ever, it seems:\n" + attempt.err());
  }

  bool others_are_gone(const std::vector<pid_t>& pids) const {
    for (std::size_t rank = 0; rank < pids.size(); ++rank) {
      if (!blow_.victims().contains(static_cast<int>(rank)) && is_alive(pids[rank])) return false;
    }
    return true;
  }

  double since_blow() const { return std::chrono::duration<double>(Clock::now() - struck_).count(); }
  void took(const std::string& what, double allowed, double seconds) {
    story_ += fmt::format(", {} {:.2f} s", what, seconds);
    world_.tally.took(what, {.allowed = allowed,
                             .seconds = seconds,
                             .machine_late = world_.pulse.latest_since(struck_),
                             .machine_slowness = world_.pulse.slowness_since(struck_)});
  }

  void check(const Attempt& attempt, const Seen& seen, int exit_code) {
    const Said said = read_said(attempt.err());
    try {
      const bool too_late = blow_.kind == Kind::kStopAndGoOn && !seen.named;
      if (too_late && exit_code != 0) return check_too_late(attempt, said, exit_code);
      if (too_late) blow_ = {};  // as good as left alone
      if (blow_.kills()) {
        check_kill(attempt, said, seen, exit_code);
      } else if (blow_.kind == Kind::kStopForGood) {
        check_stop_for_good(attempt, said, seen, exit_code);
      } else {
        check_survival(attempt, said, seen, exit_code);
      }
    } catch (const Violation& violation) {
      throw Violation(fmt::format("{}\nit said:\n{}", violation.what(), attempt.err()));
    }
    count(said);
  }

  void check_kill(const Attempt& attempt, const Said& said, const Seen& seen, int exit_code) {
    require(!said.has_notice(), "a notice of a rank that is silent or stands still, after a kill");
    require(exit_code == 137 || exit_code == 71 || attempt.launcher_hung(),
            fmt::format("exit code {} after a kill", exit_code));
    if (said.verdicts == 0 && (world_.pulse.latest_since(struck_) > kLateEnoughForLauncher ||
                               world_.pulse.slowness_since(struck_) > 4)) {
      world_.tally.counts().add(kLauncherFirst);
      return;
    }
    require(said.verdicts == 1 && seen.verdict, fmt::format("{} verdicts", said.verdicts));
    require(said.headline.find("died: its process is gone") != std::string::npos,
            "the verdict knows no death");
    check_initiating(said);
    check_written(attempt);
    took("named after a kill", kNamedWithin, *seen.verdict);
    took(saving_ ? "the others gone after a kill in a save" : "the others gone after a kill",
         saving_ ? kAtOnceWithSave : kAtOnce, *seen.others_gone);
    world_.tally.counts().add(exit_code == 71 ? kExit71 : kExit137);
  }

  void check_initiating(const Said& said) const {
    const std::set<int> first{blow_.victim}, both = blow_.victims();
    // Deaths within 0.15 s of the first count as initiating, as seen: a late machine sees late.
    const bool machine_late =
        world_.pulse.latest_since(struck_) > 0.1 || world_.pulse.slowness_since(struck_) > 2;
    bool right = said.initiating == first;
    if (blow_.kind == Kind::kKillTwo)
      right = said.initiating == both ||
              (machine_late && std::ranges::includes(both, said.initiating) && !said.initiating.empty());
    if (blow_.kind == Kind::kKillAnother && (machine_late || blow_.pause < milliseconds(250)))
      right = right || said.initiating == both;
    require(right, fmt::format("initiating: {}; it was {}", listed(said.initiating), blow_.describe()));
    for (const int rank : said.cascading)
      require(both.contains(rank), fmt::format("rank {} is called cascading, and was not struck", rank));
  }

  void check_stop_for_good(const Attempt& attempt, const Said& said, const Seen& seen, int exit_code) {
    const std::set<int> victim{blow_.victim};
    require(said.silent == victim,
            fmt::format("silent: {}; it was rank {}", listed(said.silent), blow_.victim));
    require(said.stuck.empty() && said.back.empty() && !said.hears_nobody, "a notice that is wrong");
    require(said.verdicts == 1, fmt::format("{} verdicts", said.verdicts));
    require(said.headline.starts_with(fmt::format("rank {} on ", blow_.victim)) &&
                said.headline.find("has given no sign of life") != std::string::npos &&
                said.headline.find("it is stopped") != std::string::npos,
            "the verdict does not say that it is stopped");
    require(said.initiating == victim && said.cascading.empty(), "initiating: " + listed(said.initiating));
    require(exit_code == 71 || attempt.launcher_hung(), fmt::format("exit code {} instead of 71", exit_code));
    check_written(attempt);
    took("named after a stop", kNamedWithin, *seen.named);
    took("gone, after the deadline of a stop", kAfterDeadline,
         *seen.others_gone - placement_.timeout_seconds);
    require(*seen.others_gone > placement_.timeout_seconds - 1,
            fmt::format("they left after {:.1f} s, and the timeout is {} s", *seen.others_gone,
                        placement_.timeout_seconds));
  }

  /// A run that was over when the blow fell. No rank watches any more, and those that wait in MPI_Finalize have its deadline.
  void check_too_late(const Attempt& attempt, const Said& said, int exit_code) {
    const std::string text = attempt.err();
    require(said.verdicts == 0 && !said.has_notice(), "words of a watch that is over");
    require(text.find(fmt::format("in MPI_Finalize: rank {} (pid", blow_.victim)) != std::string::npos &&
                text.find(") is stopped: kill -CONT") != std::string::npos,
            fmt::format("rank {} is not named", blow_.victim));
    require(exit_code == 71 || attempt.launcher_hung(), fmt::format("exit code {} instead of 71", exit_code));
    world_.tally.counts().add(kStoppedTooLate);
  }

  void check_survival(const Attempt& attempt, const Said& said, const Seen& seen, int exit_code) {
    const std::set<int> victim{blow_.victim};
    require(said.verdicts == 0, "a verdict, and nobody was lost");
    require(exit_code == 0, fmt::format("exit code {}", exit_code));
    require(said.stuck.empty() && !said.hears_nobody, "a notice that is wrong");
    if (blow_.kind == Kind::kStopAndGoOn) {
      // It came back at the very end: those who waited for it were gone before they could say so.
      const bool ended_at_once = since_blow() - *seen.named < kSaidWithin;
      require(said.silent == victim && (said.back == victim || (said.back.empty() && ended_at_once)),
              fmt::format("silent: {}, back: {}; it was rank {}", listed(said.silent), listed(said.back),
                          blow_.victim));
      took("named after a stop", kNamedWithin, *seen.named);
    } else {
      require(!said.has_notice(), "a false alarm");
    }
    const std::string last = attempt.last_line();
    require(last == world_.last_line, fmt::format("other weights: {}, expected {}", last, world_.last_line));
  }

  /// It can be read afterwards.
  void check_written(const Attempt& attempt) const {
    const std::string text = testing::read_text(attempt.run_dir() + "/log/verdict.txt");
    require(text.starts_with("verdict: rank"), "log/verdict.txt has no verdict:\n" + text);
  }

  void count(const Said& said) {
    Tally& counts = world_.tally.counts();
    if (placement_.stages > 0) counts.add(kPipelines);
    if (said.verdicts == 0 && !blow_.is_survived()) return;
    switch (blow_.kind) {
      case Kind::kNone:
        return counts.add(kCalm);
      case Kind::kKill:
        return counts.add(kKilled);
      case Kind::kKillTwo:
        return counts.add(kKilledTwo);
      case Kind::kKillAnother:
        counts.add(said.initiating.contains(blow_.second)  ? kSaidBoth
                   : said.cascading.contains(blow_.second) ? kSaidCascading
                                                           : kSaidFirstOnly);
        return counts.add(kKilledAnother);
      case Kind::kStopForGood:
        return counts.add(kStopped);
      case Kind::kStopAndGoOn:
        return counts.add(kWentOn);
      case Kind::kStopShortly:
        return counts.add(kUnnoticed);
    }
  }

  TrialWorld& world_;
  const LifeDirectories& directories_;
  Dice dice_;
  Placement placement_;
  Blow blow_;
  std::string& story_;
  Clock::time_point struck_{};
  bool saving_ = false;  ///< a save was under way then
};

}  // namespace

double run_trial(TrialWorld& world, const LifeDirectories& directories, Kind kind, const Dice& dice,
                 std::string& story) {
  Trial trial(world, directories, kind, dice, story);
  return trial.run();
}

}  // namespace lockstep::chaos
