// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One run after another: two at once would disturb each other.
#include "tests/chaos/attempt.hpp"
#include "tests/chaos/campaign.hpp"
#include "tests/chaos/scratch.hpp"
#include "tests/chaos/watchdog/trial.hpp"
#include "tests/chaos/watchdog/watch_campaign.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::chaos {

// One run in which a rank is slow, or waits for a processor, or all are even on a machine that is full: who is named?

enum class Slowness {
  kNone,     ///< no rank is slow; programs that never rest are on every core
  kSleeps,   ///< a rank sleeps for a tenth of each step
  kBusy,     ///< it computes for a tenth longer
  kCrowded,  ///< it shares its core with three programs that never rest, and the others do not
};

/// A rank that is slow is named in so many steps.
inline constexpr std::int64_t kNamedWithinSteps = 100;

class StragglerTrial {
 public:
  /// @param directories  its own
  StragglerTrial(std::string program, const LifeDirectories& directories, Slowness slowness, Dice dice);

  /// @throws Violation
  void run();
  const std::string& story() const { return story_; }
  /// Of a rank that was slow: the steps until it was named.
  std::optional<std::int64_t> steps_until_named() const { return steps_until_named_; }
  /// Some rank was said to wait for a processor.
  bool said_crowded() const { return !crowded_.empty(); }

 private:
  bool is_slow() const { return slowness_ == Slowness::kSleeps || slowness_ == Slowness::kBusy; }
  std::vector<std::string> settings() const;
  std::vector<std::string> command() const;
  void crowd(const ChildProcess& process) const;
  void read_said();
  void check_slow();
  void check_crowded() const;

  std::string program_;
  const LifeDirectories& directories_;
  Slowness slowness_;
  int ranks_ = 2, victim_ = -1;
  std::int64_t step_ = 0;
  std::string story_, said_;
  std::set<int> named_, crowded_;
  std::optional<std::int64_t> steps_until_named_;
};

namespace {

class StragglerCampaign {
 public:
  explicit StragglerCampaign(const StragglerOptions& options) : options_(options) {}

  int run();

 private:
  struct Count {
    std::int64_t held = 0, wrong = 0, said_crowded = 0;
  };

  Count try_all(const std::string& name, std::int64_t count);
  void try_one(const std::string& name, Slowness slowness, Dice dice, Count& count);
  std::string steps_text();

  const StragglerOptions& options_;
  Scratch scratch_;
  MachinePulse pulse_;
  std::vector<std::int64_t> steps_;  ///< until a slow rank was named
};

/// Half of the slow ones sleep, half compute.
Slowness slowness_of(const std::string& name, std::int64_t number) {
  if (name == "even") return Slowness::kNone;
  if (name == "crowded") return Slowness::kCrowded;
  return number % 2 == 0 ? Slowness::kSleeps : Slowness::kBusy;
}

StragglerCampaign::Count StragglerCampaign::try_all(const std::string& name, std::int64_t count) {
  Count counted;
  for (std::int64_t number = 1; number <= count; ++number) {
    const auto full_name = fmt::format("{}-{}", name, number);
    if (!options_.only.empty() && options_.only != full_name) continue;
    const Slowness slowness = slowness_of(name, number);
    try_one(full_name, slowness, Dice(options_.seed * 4 + static_cast<std::uint64_t>(slowness), number),
            counted);
  }
  return counted;
}

void StragglerCampaign::try_one(const std::string& name, Slowness slowness, Dice dice, Count& count) {
  const auto directories = scratch_.make(name);
  StragglerTrial trial(options_.program, directories, slowness, dice);
  try {
    trial.run();
    ++count.held;
    scratch_.remove(directories);
    if (options_.verbose) fmt::print("{}: {}\n", name, trial.story());
  } catch (const std::exception& error) {
    ++count.wrong;
    scratch_.keep();
    fmt::print(stderr, "chaos stragglers: WRONG in {} of seed {}, {}:\n{}\n  files: {}/{}\n", name,
               options_.seed, trial.story(), error.what(), scratch_.path(), name);
  }
  if (const auto steps = trial.steps_until_named()) steps_.push_back(*steps);
  count.said_crowded += trial.said_crowded() ? 1 : 0;
  std::fflush(stdout);
}

std::string StragglerCampaign::steps_text() {
  if (steps_.empty()) return "never";
  std::ranges::sort(steps_);
  return fmt::format("median {}, most {}", steps_[steps_.size() / 2], steps_.back());
}

int StragglerCampaign::run() {
  const auto start = MachinePulse::Clock::now();
  const Count slow = try_all("slow", options_.slow);
  const Count even = try_all("even", options_.even);
  const Count crowded = try_all("crowded", options_.crowded);
  const std::chrono::duration<double> elapsed = MachinePulse::Clock::now() - start;
  fmt::print(
      "a rank that is a tenth slower: named alone, within {} steps    {:>4}\n"
      "  steps until it was named                                      {}\n"
      "even ranks on a full machine: nobody named                      {:>4}\n"
      "  of these: a rank was said to wait for a processor             {:>4}\n"
      "a rank that shares its core: said to wait for it, not named     {:>4}\n\n"
      "chaos stragglers: {} runs with seed {} in {:.0f} s, {} wrong; computing took {:.1f} times as long as "
      "it "
      "needed\n",
      kNamedWithinSteps, slow.held, steps_text(), even.held, even.said_crowded, crowded.held,
      slow.held + even.held + crowded.held + slow.wrong + even.wrong + crowded.wrong, options_.seed,
      elapsed.count(), slow.wrong + even.wrong + crowded.wrong, pulse_.slowness_since(start));
  return slow.wrong + even.wrong + crowded.wrong == 0 ? 0 : 1;
}

}  // namespace

int run_straggler_campaign(const StragglerOptions& options) {
  return StragglerCampaign(options).run();
}

namespace {

constexpr std::chrono::minutes kMostForRun{5};
/// 40 steps each.
constexpr std::int64_t kEpochs = 8;
constexpr int kHogsBesideOne = 3, kHogNiceness = -15;

/// Four grains of equal work a step; nothing else takes time, on rank 0 least of all.
const std::vector<std::string> kEvenWork = {"data.global_batch=512", "data.train_samples=20480",
                                            "parallel.grain=128",    "run.checkpoint_every_steps=0",
                                            "run.log_every_steps=0", "run.trail=false"};

/// The rank of "lockstep: rank 3 (node2) WORDS...".
std::optional<int> rank_in(const std::string& line, const std::string& words) {
  constexpr std::string_view kStart = "lockstep: rank ";
  const auto at = line.find(kStart);
  if (at == std::string::npos || line.find(words) == std::string::npos) return std::nullopt;
  return static_cast<int>(std::strtol(line.c_str() + at + kStart.size(), nullptr, 10));
}

bool may_go_first() {
  return std::system("chrt -r 10 true 2>/dev/null") == 0;
}

}  // namespace

StragglerTrial::StragglerTrial(std::string program, const LifeDirectories& directories, Slowness slowness,
                               Dice dice)
    : program_(std::move(program)), directories_(directories), slowness_(slowness) {
  if (slowness_ == Slowness::kNone) {
    ranks_ = dice.percent(50) ? 2 : 4;
    story_ = fmt::format("{} even ranks on a full machine", ranks_);
    return;
  }
  victim_ = static_cast<int>(dice.between(0, ranks_ - 1));
  if (slowness_ == Slowness::kCrowded) {
    story_ = fmt::format("rank {} of {} shares its core", victim_, ranks_);
    return;
  }
  step_ = dice.between(1, 150);
  story_ = fmt::format("rank {} of {} {} a tenth longer from step {} on", victim_, ranks_,
                       slowness_ == Slowness::kBusy ? "computes" : "sleeps", step_);
}

std::vector<std::string> StragglerTrial::settings() const {
  auto settings = kEvenWork;
  if (is_slow()) {
    settings.push_back(fmt::format("inject.rank={}", victim_));
    settings.push_back(fmt::format("inject.step={}", step_));
    settings.push_back(fmt::format("inject.what={} 10%", slowness_ == Slowness::kBusy ? "busy" : "slow"));
  }
  return settings;
}

/// Where it may, a slow one goes before strangers' programs: beside them it would not be slow by a tenth.
std::vector<std::string> StragglerTrial::command() const {
  const ChaosJob job(program_, directories_.home, kEpochs, false, settings());
  std::vector<std::string> command;
  if (is_slow() && may_go_first()) command = {"chrt", "-r", "10"};
  const auto train = job.train_command({.ranks = ranks_}, directories_.run());
  command.insert(command.end(), train.begin(), train.end());
  return command;
}

/// The rank on the first core, the others on the second; all of them, like the hogs, before strangers' programs.
void StragglerTrial::crowd(const ChildProcess& process) const {
  const std::string name = std::filesystem::path(program_).filename();
  std::vector<pid_t> pids;
  for (Patience patience(kMostForRun); pids.empty() && !patience.is_exhausted();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pids = processes_by_rank(process.members(name), ranks_);
  }
  for (std::size_t rank = 0; rank < pids.size(); ++rank) {
    keep_to_core(pids[rank], std::cmp_equal(rank, victim_) ? 0 : 1);
    setpriority(PRIO_PROCESS, static_cast<id_t>(pids[rank]), kHogNiceness);
  }
}

void StragglerTrial::run() {
  auto environment = launcher_environment(directories_.temporary(), directories_.shared_memory);
  environment.emplace_back("LOCKSTEP_ALLOW_INJECT=1");
  std::optional<Hog> hog;
  if (slowness_ == Slowness::kNone) hog.emplace(std::thread::hardware_concurrency());
  if (slowness_ == Slowness::kCrowded) hog.emplace(kHogsBesideOne, 0, kHogNiceness);
  ChildProcess process(command(), environment, directories_.home + "/out", directories_.home + "/err");
  if (slowness_ == Slowness::kCrowded) crowd(process);
  const auto code = process.wait(kMostForRun);
  said_ = testing::read_text(directories_.home + "/err");
  if (code != 0) throw Violation(fmt::format("exit code {}\n{}", code.value_or(-1), said_));
  read_said();
  if (is_slow()) return check_slow();
  if (!named_.empty()) throw Violation("somebody is named, and nobody is slow:\n" + said_);
  if (slowness_ == Slowness::kCrowded) check_crowded();
}

void StragglerTrial::read_said() {
  std::istringstream lines(said_);
  for (std::string line; std::getline(lines, line);) {
    if (const auto rank = rank_in(line, ") arrives last in ")) named_.insert(*rank);
    if (const auto rank = rank_in(line, ") waits for a processor in ")) crowded_.insert(*rank);
  }
  story_ += fmt::format("; named: {}; crowded: {}", fmt::join(named_, ", "), fmt::join(crowded_, ", "));
}

void StragglerTrial::check_slow() {
  if (named_ != std::set{victim_}) throw Violation("not that rank is named:\n" + said_);
  for (const auto& event : testing::read_metrics(directories_.run())) {
    if (event.at("event") != "straggler") continue;
    if (event.at("rank") != victim_) throw Violation("another rank is in the summary: " + event.dump());
    steps_until_named_ = event.at("first_named_step").get<std::int64_t>() - step_;
    story_ +=
        fmt::format(" after {} steps, score {:.2f}", *steps_until_named_, event.at("score").get<double>());
  }
  if (!steps_until_named_) throw Violation("it is not in the summary");
  if (*steps_until_named_ > kNamedWithinSteps)
    throw Violation(fmt::format("it took {} steps", *steps_until_named_));
}

void StragglerTrial::check_crowded() const {
  if (crowded_ != std::set{victim_})
    throw Violation("it is not said that it waits for a processor:\n" + said_);
}

}  // namespace lockstep::chaos
