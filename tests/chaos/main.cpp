// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// chaos kill | damage | stages | devices | signal | prove. Disturbs training runs at random and checks that
/// this leaves no trace. chaos wrong-rank: that the ranks name whose numbers are wrong. chaos poison: that no
/// checkpoint has them. chaos watchdog: that they name who is lost, and leave.
#include "tests/chaos/attempt.hpp"
#include "tests/chaos/campaign.hpp"
#include "tests/chaos/chaos_job.hpp"
#include "tests/chaos/child_process.hpp"
#include "tests/chaos/record_damage.hpp"
#include "tests/chaos/watchdog/watch_campaign.hpp"
#include "tests/support/prelude.hpp"

#include <CLI/CLI.hpp>

namespace lockstep::chaos {
namespace {

// SIGKILL, and what must hold for the run directory that it leaves.

constexpr const char* kOneRank = "one rank";
constexpr const char* kAllRanks = "all ranks";
constexpr const char* kLauncher = "the launcher";
constexpr const char* kEverything = "launcher and ranks, or the only process";
constexpr const char* kStartUp = "before it had written anything";
constexpr const char* kSaving = "in the middle of a save";
constexpr const char* kPruning = "while old checkpoints were removed";
constexpr const char* kBeyond = "losing more than an interval, for a save was in flight";
constexpr const char* kTooLate = "too late: it ended well (not a round)";

/// Whom the dice choose; what is not there yet cannot be killed.
const char* choose(const Attempt& attempt, const std::vector<pid_t>& ranks, Dice& dice) {
  const auto choice = dice.between(1, 100);
  if (!attempt.placement().has_launcher()) return kEverything;
  if (ranks.empty()) return choice <= 50 ? kLauncher : kEverything;
  if (choice <= 40) return kOneRank;
  if (choice <= 60) return kAllRanks;
  return choice <= 80 ? kLauncher : kEverything;
}

const char* kill_something(Attempt& attempt, Dice& dice) {
  const auto ranks = attempt.ranks();
  const auto* kind = choose(attempt, ranks, dice);
  if (kind == kOneRank) kill(dice.pick(ranks), SIGKILL);
  if (kind == kAllRanks || kind == kEverything) {
    for (const auto rank : ranks) kill(rank, SIGKILL);
  }
  if (kind == kLauncher || kind == kEverything) kill(attempt.process().pid(), SIGKILL);
  return kind;
}

/// The promise "at most one interval is lost", to the step. A step is logged before its save starts, and a
/// save starts only when the one before it is on disk. So once step L is logged, the save of the last due
/// step before L has started (it may be in flight), and the one an interval earlier is complete.
void check_loss(const RunFacts& after) {
  const auto started =
      std::max<std::int64_t>(after.last_logged - 1, 0) / kCheckpointInterval * kCheckpointInterval;
  if (after.newest_checkpoint >= started - kCheckpointInterval) return;
  throw Violation(
      fmt::format("step {} was logged, but the newest checkpoint is that of step {}; it must be {} or later",
                  after.last_logged, after.newest_checkpoint, started - kCheckpointInterval));
}

void record(const Attempt& attempt, const RunFacts& after, Tally& tally) {
  check_loss(after);
  if (after.saving) tally.add(kSaving);
  if (after.pruning) tally.add(kPruning);
  if (after.metrics == attempt.before().metrics) {
    tally.add(kStartUp);
    return;
  }
  const auto lost = std::max<std::int64_t>(after.last_logged - after.newest_checkpoint, 0);
  tally.lost(lost);
  if (lost > kCheckpointInterval) tally.add(kBeyond);
}

Ending strike_dead(Attempt& attempt, Dice& dice, Tally& tally, std::string& story) {
  const auto* kind = kill_something(attempt, dice);
  story += fmt::format(", killed {}", kind);
  const int code = attempt.wait_after_blow();
  if (attempt.launcher_hung()) tally.add(kHung);
  if (code == 0) {
    tally.add(kTooLate);
    return Ending::kDone;
  }
  tally.add(kind);
  record(attempt, look_at(attempt.run_dir()), tally);
  return Ending::kDisturbed;
}

Disturbance by_kills(const std::string& name) {
  return {.name = name,
          .sections = {{"killed", {kOneRank, kAllRanks, kLauncher, kEverything, kTooLate, kHung}},
                       {"when", {kStartUp, kSaving, kPruning, kBeyond}}},
          .strike = strike_dead};
}

Disturbance by_damage() {
  Disturbance damage = by_kills("damage");
  damage.damages_records = true;
  damage.sections.push_back({"between two starts", {kMetricsLost, kTrailLost, kNothingLost, kForeign}});
  return damage;
}

Disturbance by_kills_of_pipelines(const std::string& name, Placement (*place)(Dice&), std::int64_t epochs) {
  Disturbance kills = by_kills(name);
  kills.place = place;
  kills.epochs = epochs;
  kills.normalises = false;
  return kills;
}

// The command line.

constexpr const char* kDescription =
    "Disturbs training runs at random moments, lets them go on on another number of ranks, and compares "
    "every\n"
    "byte of their weights, optimiser state and metrics with a run that was never disturbed.\n";

/// A command, which disturbs so many times unless told otherwise.
struct Command {
  const char *name, *help;
  std::int64_t rounds;
  int (*run)(const Options& options);
};
constexpr Command kCommands[] = {
    {"kill", "SIGKILL to one rank, all ranks, the launcher or everything", 60,
     [](const Options& options) { return run_campaign(options, by_kills("kill")); }},
    {"damage",
     "SIGKILL as above; between two starts metrics.jsonl and trail.bin are damaged, and files of others "
     "lie beside them and in log/",
     20, [](const Options& options) { return run_campaign(options, by_damage()); }},
    {"stages", "SIGKILL as above, to pipelines that go on in other shapes", 20,
     [](const Options& options) {
       return run_campaign(options, by_kills_of_pipelines("stages", random_stages, 4));
     }},
    {"devices",
     "SIGKILL as above, to pipelines and ranks that go on from CPU cores to the emulated device and back", 10,
     [](const Options& options) {  // The emulator takes some tenths of a second a step.
       return run_campaign(options, by_kills_of_pipelines("devices", random_stages_on_devices, 1));
     }},
    {"prove", "One flipped bit in memory or on disk, which lockstep prove has to locate; or forgeries", 24,
     run_prove_campaign},
    {"wrong-rank",
     "Wrong numbers on one rank while it trains, which the run has to name; as many honest runs", 24,
     run_wrong_rank_campaign},
    {"poison", "A bit of what a rank holds flips between saves: the run must end as if it had not, or refuse",
     24, run_poison_campaign},
    {"prove-ranks",
     "Wrong numbers on one rank that the run does not see: lockstep prove on one rank has to name it", 24,
     run_prove_ranks_campaign},
    {"signal", "One to three signals that ask for a stop, to the launcher or one rank", 20,
     [](const Options& options) { return run_campaign(options, by_signals(options.slurm)); }},
};

/// `options` hold the defaults.
void add_common(CLI::App& command, Options& options) {
  command.add_option("--life", options.only_life, "Only this run of that seed, as a failure names it");
  command.add_option("--seed", options.seed, fmt::format("Of all random choices; default {}", options.seed));
  command.add_option("--jobs", options.jobs, fmt::format("Runs at the same time; default {}", options.jobs))
      ->check(CLI::Range(1, 64));
  command.add_flag("--verbose", options.verbose, "Tell of every start: where, when struck, how it ended");
  command.add_option("--program", options.program, "Path of lockstep; default $LOCKSTEP_PROGRAM")
      ->envname("LOCKSTEP_PROGRAM")
      ->required();
}

void add_campaign(CLI::App& app, Options& options, const Command& its, int& exit_code) {
  auto* command = app.add_subcommand(its.name, its.help);
  command->preparse_callback([&options, rounds = its.rounds](std::size_t) { options.rounds = rounds; });
  command
      ->add_option("--rounds", options.rounds,
                   fmt::format("How many times to strike; default {}", its.rounds))
      ->check(CLI::PositiveNumber);
  add_common(*command, options);
  command->callback([&, command] {
    if (options.forgeries > 0 && command->count("--rounds") == 0) options.rounds = 0;
    exit_code = its.run(options);
  });
}

void add_watchdog(CLI::App& app, WatchOptions& options, int& exit_code) {
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
  add_common(*command, options);
  command->callback([&] { exit_code = run_watch_campaign(options); });
}

int run(int argc, char** argv) {
  CLI::App app{kDescription};
  app.name("chaos");
  app.footer("Exit codes: 0 all promises kept, 1 a promise broken (with the seed that shows it), 2 usage.");
  app.require_subcommand(1);
  Options options;
  int exit_code = 0;
  for (const Command& command : kCommands) add_campaign(app, options, command, exit_code);
  app.get_subcommand("prove")
      ->add_option(
          "--forgeries", options.forgeries,
          "How many false numbers in metrics, labels, manifests, checkpoints and trails, with checksums made "
          "good; default 0. Alone it leaves out the flipped bits")
      ->check(CLI::PositiveNumber);
  app.get_subcommand("signal")->add_flag("--slurm", options.slurm,
                                         "Some runs under Slurm, whose $SLURM_CONF must be set");
  WatchOptions watch;
  add_watchdog(app, watch, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace
}  // namespace lockstep::chaos

// NOLINTNEXTLINE(bugprone-exception-escape): what is no std::exception may end it as it likes
int main(int argc, char** argv) {
  return lockstep::chaos::run_guarded([&] {
    try {
      return lockstep::chaos::run(argc, argv);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "chaos: %s\n", error.what());
      return 1;
    }
  });
}
