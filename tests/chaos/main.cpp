// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// chaos kill | damage | stages | devices | signal | prove: disturbs training runs at random and checks that nothing
/// of it can be seen afterwards. chaos watchdog: that the ranks name who is lost, and leave. chaos stragglers: that
/// they name who is slow.
#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/child_process.hpp"
#include "tests/chaos/prove.hpp"
#include "tests/chaos/watchdog/watch_campaign.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>

namespace {

using lockstep::chaos::Disturbance;
using lockstep::chaos::Options;

constexpr const char* kDescription =
    "Disturbs training runs at random moments, lets them go on on another number of ranks, and compares "
    "every\n"
    "byte of their weights, optimiser state and metrics with a run that was never disturbed.\n";

void add_campaign(CLI::App& app, Options& options, const std::string& name, const std::string& help,
                  std::int64_t rounds, const std::function<int(const std::string&)>& run, int& exit_code) {
  auto* command = app.add_subcommand(name, help);
  command->preparse_callback([&options, rounds](std::size_t) { options.rounds = rounds; });
  command->add_option("--rounds", options.rounds, fmt::format("How many times to strike; default {}", rounds))
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", options.seed, "Of all random choices; default 1");
  command->add_option("--life", options.only_life, "Only this run of that seed, as a failure names it");
  command->add_option("--jobs", options.jobs, "Runs at the same time; default 3")->check(CLI::Range(1, 64));
  command->add_flag("--verbose", options.verbose, "Tell of every start: where, when struck, how it ended");
  command->add_option("--program", options.program, "Path of lockstep; default $LOCKSTEP_PROGRAM")
      ->envname("LOCKSTEP_PROGRAM")
      ->required();
  command->callback([&, name, run] { exit_code = run(name); });
}

void add_watchdog(CLI::App& app, lockstep::chaos::WatchOptions& options, int& exit_code) {
  auto* command =
      app.add_subcommand("watchdog", "Kills and stops ranks, and checks who is named, when, and who leaves");
  command->footer(
      "tests/chaos/run watchdog also takes --partitions N, for hosts that are cut off from each other; "
      "default 4");
  command->add_option("--kills", options.kills, "How many runs lose ranks; default 40")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--stops", options.stops,
                   "How many have a rank stopped, for good or for a while; default 10")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--hours-with-hog", options.hours_with_hog,
                   "How long to train undisturbed beside a hog on every core; default 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", options.seed, "Of all random choices; default 1");
  command->add_option("--only", options.only, "Only this run of that seed, as a failure names it: kill-17");
  command->add_option("--jobs", options.jobs, "Runs at the same time; default 2")->check(CLI::Range(1, 64));
  command->add_flag("--verbose", options.verbose, "Tell of every run: where, how struck, how it ended");
  command->add_option("--program", options.program, "Path of lockstep; default $LOCKSTEP_PROGRAM")
      ->envname("LOCKSTEP_PROGRAM")
      ->required();
  command->callback([&] { exit_code = lockstep::chaos::run_watch_campaign(options); });
}

void add_stragglers(CLI::App& app, lockstep::chaos::StragglerOptions& options, int& exit_code) {
  auto* command =
      app.add_subcommand("stragglers", "Slows ranks down, or the machine, and checks who is named for it");
  const auto count = [&](const char* name, std::int64_t& number, const std::string& help) {
    command->add_option(name, number, fmt::format("{}; default {}", help, number))
        ->check(CLI::NonNegativeNumber);
  };
  count("--slow", options.slow, "How many runs have a rank that is a tenth slower");
  count("--even", options.even, "How many have none, beside programs that take every core");
  count("--crowded", options.crowded, "How many have a rank that shares its core with such programs");
  command->add_option("--seed", options.seed, "Of all random choices; default 1");
  command->add_option("--only", options.only, "Only this run of that seed, as a failure names it: slow-3");
  command->add_flag("--verbose", options.verbose, "Tell of every run");
  command->add_option("--program", options.program, "Path of lockstep; default $LOCKSTEP_PROGRAM")
      ->envname("LOCKSTEP_PROGRAM")
      ->required();
  command->callback([&] { exit_code = lockstep::chaos::run_straggler_campaign(options); });
}

int run(int argc, char** argv) {
  CLI::App app{kDescription};
  app.name("chaos");
  app.footer("Exit codes: 0 all promises kept, 1 a promise broken (with the seed that shows it), 2 usage.");
  app.require_subcommand(1);
  Options options;
  int exit_code = 0;
  const auto disturbing = [&options](const std::function<std::unique_ptr<Disturbance>()>& make) {
    return [&options, make](const std::string& name) {
      return lockstep::chaos::run_campaign(options, name, *make());
    };
  };
  add_campaign(app, options, "kill", "SIGKILL to one rank, all ranks, the launcher or everything", 60,
               disturbing(lockstep::chaos::make_kill), exit_code);
  add_campaign(
      app, options, "damage",
      "SIGKILL as above; between two starts metrics.jsonl and trail.bin are damaged, and files of others "
      "lie beside them and in flight/",
      20, disturbing(lockstep::chaos::make_damage), exit_code);
  add_campaign(app, options, "stages", "SIGKILL as above, to pipelines that go on in other shapes", 20,
               disturbing(lockstep::chaos::make_stage_kill), exit_code);
  add_campaign(
      app, options, "devices",
      "SIGKILL as above, to pipelines and ranks that go on from CPU cores to the emulated device and back",
      10, disturbing(lockstep::chaos::make_device_kill), exit_code);
  add_campaign(
      app, options, "prove",
      "One flipped bit in memory or on disk, which lockstep prove has to locate; or forgeries", 24,
      [&](const std::string& name) {
        const auto* prove = app.get_subcommand(name);
        if (prove->count("--forgeries") > 0 && prove->count("--rounds") == 0) options.rounds = 0;
        return lockstep::chaos::run_prove_campaign(options);
      },
      exit_code);
  add_campaign(app, options, "signal",
               "One to three signals that ask for a stop, to the launcher or one rank", 20,
               disturbing([&] { return lockstep::chaos::make_signal(options.slurm); }), exit_code);
  auto* prove = app.get_subcommand("prove");
  prove
      ->add_option(
          "--forgeries", options.forgeries,
          "How many false numbers in metrics, labels, manifests, checkpoints and trails, with checksums made "
          "good; default 0. Alone it leaves out the flipped bits")
      ->check(CLI::PositiveNumber);
  app.get_subcommand("signal")->add_flag("--slurm", options.slurm,
                                         "Some runs under Slurm, whose $SLURM_CONF must be set");
  lockstep::chaos::WatchOptions watch;
  add_watchdog(app, watch, exit_code);
  lockstep::chaos::StragglerOptions stragglers;
  add_stragglers(app, stragglers, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what is no std::exception may end it as it likes
int main(int argc, char** argv) {
  return lockstep::chaos::run_guarded([&] {
    try {
      return run(argc, argv);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "chaos: %s\n", error.what());
      return 1;
    }
  });
}
