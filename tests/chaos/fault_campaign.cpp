// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/fault_campaign.hpp"

#include "tests/support/prelude.hpp"

#include <fmt/ranges.h>

namespace lockstep::chaos {

int FaultCampaign::run() {
  prepare();
  live_all();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
  fmt::print("{}\nchaos {}: {} rounds with seed {} in {:.0f} s, {} wrong\n", text(), name_, rounds_.taken(),
             options_.seed, elapsed.count(), violations_);
  return broke_a_promise() || !kept_all_promises() ? 1 : 0;
}

void FaultCampaign::tell(const std::string& line) {
  const std::lock_guard lock(output_);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void FaultCampaign::show_progress() {
  const std::lock_guard lock(output_);
  const auto tenths = rounds_.taken() * 10 / std::max<std::int64_t>(rounds_.total(), 1);
  if (std::exchange(shown_tenths_, tenths) == tenths || tenths == 10) return;
  fmt::print("chaos {}: {} of {} rounds\n", name_, rounds_.taken(), rounds_.total());
  std::fflush(stdout);
}

void FaultCampaign::live_all() {
  live_side_by_side(
      options_, [this] { return !broke_a_promise() && !rounds_.finished(); },
      [this](std::int64_t number) { live_one(number); });
}

void FaultCampaign::live_one(std::int64_t number) {
  const auto directories = scratch_.make(fmt::format("life-{}", number));
  Dice dice(options_.seed, number);
  std::string story;
  try {
    live(number, directories, dice, story);
    scratch_.remove(directories);
    if (options_.verbose) tell(fmt::format("{}: {}", number, story));
    show_progress();
  } catch (const std::exception& error) {
    const std::lock_guard lock(output_);
    ++violations_;
    scratch_.keep();
    fmt::print(stderr,
               "chaos {0}: VIOLATION in life {1} of seed {2}, {3}:\n{4}\n  files: {5}/life-{1}\n"
               "  again: tests/chaos/run {0} --seed {2} --life {1}\n",
               name_, number, options_.seed, story, error.what(), scratch_.path());
  }
}

testing::Outcome FaultCampaign::start(const std::string& command) const {
  constexpr int kPatienceSeconds = 600;
  std::string line = "export LOCKSTEP_ALLOW_INJECT=1 PROGRAM=" + options_.program;
  for (const std::string& variable : launcher_environment(scratch_.path(), "/dev/shm"))
    line += " " + variable;
  return testing::run_shell(line + "; " + command, kPatienceSeconds);
}

testing::Outcome FaultCampaign::train(const ChaosJob& job, const Placement& placement, const std::string& run,
                                      const std::string& more) const {
  return start(fmt::format("{} {}", fmt::join(job.train_command(placement, run), " "), more));
}

FaultCampaign::Reference FaultCampaign::train_reference(const ChaosJob& job, const std::string& name) const {
  const auto directories = scratch_.make(name);
  return {train_undisturbed(job, directories), testing::read_text(directories.run() + "/trail.bin")};
}

std::string aimed(const char* fault, Dice& dice, int last_bit) {
  const auto element = dice.between(0, 1'000'000);
  return fmt::format(fmt::runtime(fault), fmt::format("{}:{}", element, dice.between(0, last_bit)));
}

std::string injected(std::int64_t rank, std::int64_t step, const std::string& what) {
  return fmt::format("inject.rank={} inject.step={} 'inject.what={}'", rank, step, what);
}

}  // namespace lockstep::chaos
