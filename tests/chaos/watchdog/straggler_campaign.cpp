// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One run after another: two at once would disturb each other.
#include "tests/chaos/watchdog/straggler_campaign.hpp"

#include "tests/chaos/scratch.hpp"
#include "tests/chaos/watchdog/machine_pulse.hpp"
#include "tests/chaos/watchdog/straggler_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

namespace lockstep::chaos {
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

}  // namespace lockstep::chaos
