// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/watch_campaign.hpp"

#include "tests/chaos/fault_campaign.hpp"
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

class WatchCampaign final : public FaultCampaign {
 public:
  explicit WatchCampaign(const WatchOptions& options)
      : FaultCampaign(options, "watchdog"),
        watch_(options),
        endless_(options.program, scratch_.make("endless").home, kEndlessEpochs, false, kSettings),
        finite_(options.program, scratch_.make("finite").home, kFiniteEpochs, false, kSettings) {}

 private:
  void prepare() override {
    tally_.section("ranks of 2 to 5 under mpirun, struck once at a random step",
                   {kKilled, kKilledTwo, kKilledAnother, kSaidBoth, kSaidCascading, kSaidFirstOnly, kStopped,
                    kWentOn, kStoppedTooLate, kUnnoticed, kCalm, kPipelines});
    tally_.section("how jobs ended", {kExit137, kExit71, kLauncherHung, kLauncherFirst});
    last_line_ = train_undisturbed(finite_, scratch_.make("reference"));
  }

  /// Beside a hog one run after another, until they have taken so long together.
  void live_all() override {
    std::atomic<std::int64_t> struck{0};
    live_side_by_side(
        options_, [&] { return !broke_a_promise() && struck++ < rounds_.total(); },
        [this](std::int64_t number) { live_one(number); });
    if (options_.only_life > 0 || watch_.hours_with_hog <= 0) return;
    const Hog hog(std::thread::hardware_concurrency());
    for (auto number = rounds_.total() + 1;
         calm_seconds_ < watch_.hours_with_hog * 3600 && !broke_a_promise(); ++number)
      live_one(number);
  }

  void live(std::int64_t number, const LifeDirectories& directories, Dice& dice,
            std::string& story) override {
    rounds_.take();
    const Blow::Kind kind = kind_of(number, dice);
    const double seconds = run_trial(world_, directories, kind, dice, story);
    if (kind == Blow::Kind::kNone) calm_seconds_ += seconds;
  }

  std::string text() const override {
    return fmt::format(
        "{}\n{} kills and {} stops, {:.2f} hours of training beside a hog; {} late without excuse; this "
        "machine "
        "was up to {:.2f} s late, and computing took {:.1f} times as long as it needed",
        trials_.text(), watch_.kills, watch_.stops, calm_seconds_ / 3600, trials_.without_excuse(),
        pulse_.latest_since(start_), pulse_.slowness_since(start_));
  }

  bool kept_all_promises() const override { return trials_.without_excuse() == 0; }

  /// Kills and stops mixed evenly; what comes after them is left alone.
  Blow::Kind kind_of(std::int64_t number, Dice& dice) const {
    const std::int64_t all = watch_.kills + watch_.stops;
    if (number > all) return Blow::Kind::kNone;
    const bool kills = number * watch_.kills / all != (number - 1) * watch_.kills / all;
    return kills ? random_kill(dice) : random_stop(dice);
  }

  const WatchOptions& watch_;
  ChaosJob endless_, finite_;
  std::string last_line_;
  TrialTally trials_{tally_};
  MachinePulse pulse_;
  TrialWorld world_{endless_, finite_, last_line_, trials_, pulse_};
  Clock::time_point start_ = Clock::now();
  double calm_seconds_ = 0;
};

}  // namespace

int run_watch_campaign(WatchOptions options) {
  options.rounds = options.kills + options.stops;
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
