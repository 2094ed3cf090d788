// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Any number of random networks, one after another, with a tally; tests/models/random_networks/run starts
/// it.
#include "tests/models/random_networks/random_case.hpp"
#include "tests/support/prelude.hpp"

#include <CLI/CLI.hpp>

namespace {

using lockstep::test::Comparison;
using lockstep::test::RandomCase;

struct Options {
  std::uint64_t first = 1;
  std::int64_t count = 2000;
  std::vector<std::string> devices{"cpu", "emulated"};
  bool verbose = false;
};

struct Tally {
  std::int64_t trials = 0, mismatches = 0, differences = 0, with_ties = 0, ties = 0;
  double worst = 0;

  void add(const Comparison& verdict) {
    ++trials;
    mismatches += verdict.mismatch.empty() ? 0 : 1;
    with_ties += verdict.ties > 0 ? 1 : 0;
    ties += verdict.ties;
    worst = std::max(worst, verdict.worst);
  }
};

void run(const RandomCase& trial, const Options& options, Tally& tally) {
  if (options.verbose) fmt::print("{}", trial.describe());
  std::vector<Comparison> verdicts;
  for (const std::string& device : options.devices) {
    std::fflush(stdout);
    const Comparison& verdict = verdicts.emplace_back(lockstep::test::try_case(trial, device));
    tally.add(verdict);
    if (options.verbose)
      fmt::print("{}: {:.3f} of what is allowed, {} ties\n", device, verdict.worst, verdict.ties);
    if (verdict.mismatch.empty()) continue;
    fmt::print("seed {} on {}: {}\n{}", trial.seed, device, verdict.mismatch, trial.describe());
  }
  for (std::size_t i = 1; i < verdicts.size(); ++i) {
    const std::string difference = lockstep::test::difference(trial, verdicts[0], verdicts[i]);
    if (difference.empty()) continue;
    ++tally.differences;
    fmt::print("seed {} on {} and {}: {}\n{}", trial.seed, options.devices[0], options.devices[i], difference,
               trial.describe());
  }
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be tried ends the campaign with its words
int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains random networks for two steps and compares them with double precision"};
  app.add_option("--seed", options.first, "Seed of the first network")->capture_default_str();
  app.add_option("--count", options.count, "How many, one seed after another")->capture_default_str();
  app.add_option("--device", options.devices, "cpu, emulated, cuda; several are allowed")
      ->capture_default_str();
  app.add_flag("--verbose", options.verbose,
               "Print every network before it is tried: shows which one crashes");
  CLI11_PARSE(app, argc, argv);
  Tally tally;
  for (std::int64_t i = 0; i < options.count; ++i) {
    run(lockstep::test::make_random_case(options.first + static_cast<std::uint64_t>(i)), options, tally);
  }
  fmt::print(
      "{} networks from seed {}, {} trials: {} mismatches; {} differences of bits between devices; {} ties "
      "in {} "
      "trials; worst error {:.3f} of what rounding allows\n",
      options.count, options.first, tally.trials, tally.mismatches, tally.differences, tally.ties,
      tally.with_ties, tally.worst);
  return tally.mismatches + tally.differences == 0 ? 0 : 1;
}
