// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep runs [DIR], lockstep compare A B...: runs in a table, and beside each other.
#include "common/env.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/plot.hpp"
#include "common/terminal.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/reports/run_comparison.hpp"
#include "trainer/reports/runs_table.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

// lockstep runs [DIR]

namespace {

struct RunsOptions {
  std::string directory = "runs", sort = "name";
  std::vector<std::string> where;
  bool reverse = false, json = false;
};

int list_runs(const RunsOptions& options) {
  std::vector<RunCondition> conditions;
  for (const std::string& text : options.where) conditions.push_back(parse_run_condition(text));
  std::vector<RunHistory> runs = find_runs(Env::posix(), options.directory);
  const std::size_t all = runs.size();
  std::erase_if(runs, [&](const RunHistory& run) {
    return !std::ranges::all_of(conditions, [&](const RunCondition& c) { return meets(run, c); });
  });
  sort_runs(runs, options.sort, options.reverse);
  if (options.json) {
    print("{}\n", json_text_in_ascii(runs_json(runs, options.directory)));
  } else if (runs.empty()) {
    print("{}: {}\n", options.directory,
          all == 0 ? "holds no runs; 'lockstep train JOB.yaml' makes one and says where"
                   : "none of its runs is as --where asks");
  } else {
    print("{}", runs_text(runs, output_columns()));
  }
  return 0;
}

}  // namespace

void add_runs_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("runs", "List the runs in a folder, with what they came to");
  auto options = std::make_shared<RunsOptions>();
  command->add_option("directory", options->directory, "Where the runs are, or one of them")
      ->capture_default_str();
  command
      ->add_option("--sort", options->sort, "The best or newest first; accuracy is the best, last the last")
      ->check(CLI::IsMember(run_sort_keys()))
      ->capture_default_str();
  command->add_flag("--reverse", options->reverse, "The other way round");
  command
      ->add_option(
          "--where", options->where,
          "key=value: only runs whose job has this value, or state=finished; may be given again, all "
          "must hold")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "One JSON object, with all numbers and the whole jobs");
  command->footer(
      "States: running, finished, interrupted (saved on request), failed (ended with an\n"
      "error), lost (its process, or a rank, is gone), damaged, no run. 'best % @' is the\n"
      "best accuracy, on held-out samples (data.validation) or the test set, and its\n"
      "epoch: 'lockstep eval RUN@best' takes that checkpoint.\n"
      "On a narrow terminal some columns are left out; a file or pipe gets all.\n"
      "Examples:\n"
      "  lockstep runs\n"
      "  lockstep runs --sort accuracy --where model=net --where train.optimizer.lr=0.05\n"
      "  lockstep runs runs/sweep --json | jq '.runs[].best_accuracy'");
  command->callback([=, &action] { action = [=] { return list_runs(*options); }; });
}

// lockstep compare A B...

namespace {

int compare(const std::vector<std::string>& paths, bool json) {
  const RunComparison comparison = compare_runs(Env::posix(), paths);
  if (json) {
    print("{}\n", json_text_in_ascii(comparison_json(comparison)));
    return 0;
  }
  constexpr int kUsualColumns = 79;
  const OutputTerminal output = output_terminal();
  const int columns = output_columns();
  print("{}", comparison_text(comparison, columns));
  finish_standard_output();
  write_out(comparison_curves(
      comparison,
      {.columns = std::min(columns, kUsualColumns), .unicode = output.unicode, .colours = output.escapes}));
  return 0;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("compare", "Runs beside each other: jobs, curves, results, first difference");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto json = std::make_shared<bool>(false);
  command->add_option("runs", *paths, "Run directories, two or more")->required()->expected(2, 1000);
  command->add_flag("--json", *json, "One JSON object, with every epoch of each run");
  command->footer(
      "Shows the keys whose values differ, what the runs came to, the first step whose\n"
      "fingerprints (trail.bin) differ from those of the first run, and the curves of\n"
      "accuracy and loss: in braille where the terminal is UTF-8, otherwise ASCII.\n"
      "How the weights of two checkpoints differ, 'lockstep diff' says.\n"
      "Example:\n"
      "  lockstep compare runs/mnist runs/mnist-2");
  command->callback([=, &action] { action = [=] { return compare(*paths, *json); }; });
}

}  // namespace lockstep
