// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/watch_campaign.hpp"

#include "tests/chaos/attempt.hpp"
#include "tests/chaos/scratch.hpp"
#include "tests/chaos/watchdog/trial.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::chaos {

namespace {

using Clock = MachinePulse::Clock;

/// 40 steps each.
constexpr std::int64_t kEndlessEpochs = 100'000;
constexpr std::int64_t kFiniteEpochs = 8;  ///< still under way when a late campaign strikes
/// Work for five ranks; and most moments are no save.
const std::vector<std::string> kSettings = {"parallel.grain=12", "run.checkpoint_every_steps=20"};

struct Plan {
  std::string name;  ///< "kill-17"
  std::function<Blow::Kind(Dice&)> kind;
  std::uint64_t stream = 0;  ///< of random numbers
  std::int64_t number = 0;
};

class WatchCampaign {
 public:
  explicit WatchCampaign(const WatchOptions& options)
      : options_(options),
        endless_(options.program, scratch_.make("endless").home, kEndlessEpochs, false, kSettings),
        finite_(options.program, scratch_.make("finite").home, kFiniteEpochs, false, kSettings),
        world_{endless_, finite_, last_line_, tally_, pulse_} {}

  int run();

 private:
  void open_sections();
  std::vector<Plan> plans() const;
  void strike_all(const std::vector<Plan>& plans);
  void leave_alone();
  double try_one(const Plan& plan);
  void report(const std::string& what, const std::string& story, const Plan& plan);
  void tell(const std::string& line);

  const WatchOptions& options_;
  Scratch scratch_;
  ChaosJob endless_, finite_;
  std::string last_line_;
  TrialTally tally_;
  MachinePulse pulse_;
  TrialWorld world_;
  std::atomic<std::size_t> next_{0};
  std::atomic<int> violations_{0};
  std::mutex output_;
  double calm_seconds_ = 0;
};

void WatchCampaign::open_sections() {
  Tally& counts = tally_.counts();
  counts.section("ranks of 2 to 5 under mpirun, struck once at a random step",
                 {kKilled, kKilledTwo, kKilledAnother, kSaidBoth, kSaidCascading, kSaidFirstOnly, kStopped,
                  kWentOn, kStoppedTooLate, kUnnoticed, kCalm, kPipelines});
  counts.section("how jobs ended", {kExit137, kExit71, kLauncherHung, kLauncherFirst});
}

/// Kills and stops mixed evenly.
std::vector<Plan> WatchCampaign::plans() const {
  std::vector<Plan> plans;
  const auto all = options_.kills + options_.stops;
  std::int64_t kills = 0, stops = 0;
  for (std::int64_t i = 0; i < all; ++i) {
    const bool kill = stops * options_.kills >= kills * options_.stops && kills < options_.kills;
    const auto number = kill ? ++kills : ++stops;
    plans.push_back({fmt::format("{}-{}", kill ? "kill" : "stop", number), kill ? random_kill : random_stop,
                     options_.seed * 4 + (kill ? 1 : 2), number});
  }
  if (!options_.only.empty())
    std::erase_if(plans, [this](const Plan& plan) { return plan.name != options_.only; });
  return plans;
}

/// Returns how long the run took.
double WatchCampaign::try_one(const Plan& plan) {
  const auto directories = scratch_.make(plan.name);
  Dice dice(plan.stream, plan.number);
  const Blow::Kind kind = plan.kind(dice);
  Trial trial(world_, directories, kind, dice);
  try {
    trial.run();
    scratch_.remove(directories);
    if (options_.verbose) tell(plan.name + ": " + trial.story());
  } catch (const std::exception& error) {
    report(error.what(), trial.story(), plan);
  }
  return trial.seconds();
}

void WatchCampaign::strike_all(const std::vector<Plan>& plans) {
  const auto work = [&] {
    while (violations_ == 0) {
      const std::size_t next = next_++;
      if (next >= plans.size()) return;
      try_one(plans[next]);
      if ((next + 1) * 10 / plans.size() != next * 10 / plans.size() && next + 1 < plans.size())
        tell(fmt::format("chaos watchdog: {} of {} runs struck", next + 1, plans.size()));
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < options_.jobs; ++i) workers.emplace_back(work);
  for (auto& worker : workers) worker.join();
}

/// One run after another, until they have taken so long together.
void WatchCampaign::leave_alone() {
  const double seconds = options_.hours_with_hog * 3600;
  if (seconds <= 0) return;
  const Hog hog(std::thread::hardware_concurrency());
  for (std::int64_t number = 1; calm_seconds_ < seconds && violations_ == 0; ++number)
    calm_seconds_ += try_one({fmt::format("calm-{}", number), [](Dice&) { return Blow::Kind::kNone; },
                              options_.seed * 4 + 3, number});
}

void WatchCampaign::report(const std::string& what, const std::string& story, const Plan& plan) {
  const std::lock_guard lock(output_);
  ++violations_;
  scratch_.keep();
  fmt::print(stderr,
             "chaos watchdog: VIOLATION in {} of seed {}, {}:\n{}\n  files: {}/{}\n"
             "  again: tests/chaos/run watchdog --seed {} --kills {} --stops {} --only {}\n",
             plan.name, options_.seed, story, what, scratch_.path(), plan.name, options_.seed, options_.kills,
             options_.stops, plan.name);
}

void WatchCampaign::tell(const std::string& line) {
  const std::lock_guard lock(output_);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

int WatchCampaign::run() {
  const auto start = Clock::now();
  open_sections();
  last_line_ = train_undisturbed(finite_, scratch_.make("reference"));
  strike_all(plans());
  leave_alone();
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  fmt::print(
      "{}\nchaos watchdog: {} kills and {} stops with seed {} in {:.0f} s, {:.2f} hours of training beside a "
      "hog; {} wrong, {} late without excuse; this machine was up to {:.2f} s late, and computing took "
      "{:.1f} times as long as it needed\n",
      tally_.text(), options_.kills, options_.stops, options_.seed, elapsed.count(), calm_seconds_ / 3600,
      violations_.load(), tally_.without_excuse(), pulse_.latest_since(start), pulse_.slowness_since(start));
  return violations_ == 0 && tally_.without_excuse() == 0 ? 0 : 1;
}

}  // namespace

int run_watch_campaign(const WatchOptions& options) {
  return WatchCampaign(options).run();
}

void TrialTally::took(const std::string& what, const Lateness& lateness) {
  const std::lock_guard lock(mutex_);
  times_[what].push_back(lateness);
}

std::size_t TrialTally::without_excuse() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [what, times] : times_)
    count += static_cast<std::size_t>(std::ranges::count_if(times, &Lateness::is_without_excuse));
  return count;
}

std::string TrialTally::text() const {
  std::string text = counts_.text();
  const std::lock_guard lock(mutex_);
  if (times_.empty()) return text;
  text += fmt::format("{:<44}{:>6}{:>8}{:>8}{:>7}{:>16}\n", "how long it took, in seconds", "times", "median",
                      "most", "late", "without excuse");
  for (const auto& [what, times] : times_) {
    std::vector<double> seconds;
    for (const Lateness& time : times) seconds.push_back(time.seconds);
    std::ranges::sort(seconds);
    text += fmt::format("  {:<42}{:>6}{:>8.2f}{:>8.2f}{:>7}{:>16}\n", what, times.size(),
                        seconds[seconds.size() / 2], seconds.back(),
                        std::ranges::count_if(times, &Lateness::is_late),
                        std::ranges::count_if(times, &Lateness::is_without_excuse));
  }
  return text;
}

}  // namespace lockstep::chaos
