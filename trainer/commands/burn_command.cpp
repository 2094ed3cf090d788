// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep burn [--level 1|2|3] [--time 10m] ...
#include "common/buffers.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "trainer/burn/burn.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/commands/machine_report.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/stop_signal.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr const char* kBurnFooter = R"(Examples:
  lockstep burn --time 30s
  mpirun -np 8 lockstep burn --level 2
  srun --mpi=pmix lockstep burn --json
  launch/run --hostfile hosts burn --level 1

Needs no data and no job file. Every rank trains what has a known answer, and
sends what all know. A row of the table is a rank: PASS, WRONG (something came
out other than it must), SLOW (beside the median of like ranks) or NOT TESTED
(it could not be started, which is no PASS). Below stand what was exercised,
what was not, and what to do. The last line is the verdict of all.
memtester, gpu-burn and DCGM test memory and load a GPU by themselves.

Exit code: 0 all PASS, 1 something is WRONG, 3 a rank is SLOW, 69 something is
NOT TESTED, 75 stopped by a signal before the end, with what was found so far.)";

int burn_on_ranks(const burn::BurnOptions& options, bool json, bool share, const CLI::App& command) {
  catch_stop_signals(OnStop::kReport);
  return run_on_ranks(options.parallel, [&](Communicator& comm) {
    expect_equal_ranks(comm, program_facts("burn", comm) + option_facts(command));
    burn::BurnReport report = burn::run_burn(comm, options);
    agree(comm, [&] {
      if (comm.rank() != 0) return;
      report.compiler = build_facts().compiler;
      print("{}", json ? json_text(to_json(report), 2) + "\n" : to_text(report, page_columns()));
      if (share) print("{}", to_share(report));
    });
    return comm.rank() == 0 ? exit_code_of(report) : 0;
  });
}

}  // namespace

void add_burn_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("burn", "Test this machine: trains and sends data with known answers");
  auto options = std::make_shared<burn::BurnOptions>();
  auto json = std::make_shared<bool>(false), share = std::make_shared<bool>(false);
  auto time = std::make_shared<std::string>(), fault = std::make_shared<std::string>();
  limit(command->add_option("--level", options->level, "1: a minute, 2: ten minutes, 3: four hours"), 1, 3);
  command->add_option("--time", *time, "Duration instead: 90s, 10m, 2h; at least one round is made");
  command
      ->add_option("--without", options->without, "Checks to leave out, by commas; they show as NOT TESTED")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(burn::kChecks.begin(), burn::kChecks.end())));
  command
      ->add_option("--device", options->parallel.device,
                   "cpu, cuda, cuda:N or emulated; auto: a GPU where there is one")
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "Threads of each rank; default: its share of the cores that it may use")
      ->check(CLI::Range(1, 1024));
  add_backend_option(*command, options->parallel.backend);
  command->add_option("--ranks", options->parallel.ranks, "With --backend thread: how many")
      ->check(CLI::Range(1, 1024));
  auto* json_flag = command->add_flag("--json", *json, kJsonHelp);
  command->add_flag("--share", *share, "Also print a block for docs/machines.md, without names of hosts")
      ->excludes(json_flag);
  command->add_option("--inject", *fault,
                      "For tests: KIND@RANK fails on purpose, with LOCKSTEP_ALLOW_INJECT=1");
  command->footer(kBurnFooter);
  on_choice(*command, action, [=] {
    options->seconds =
        time->empty() ? at(burn::kSecondsOfLevels, options->level - 1) : burn::parse_time(*time);
    if (!fault->empty()) options->fault = burn::parse_fault(*fault);
    options->shows_progress = !*json;
    return burn_on_ranks(*options, *json, *share, *command);
  });
}

}  // namespace lockstep
