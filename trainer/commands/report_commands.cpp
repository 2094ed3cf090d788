// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Commands that read runs: runs, compare and report.
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/output_file.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/reports/report.hpp"
#include "trainer/reports/runs.hpp"
#include "trainer/run/event_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
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
  if (options.json) return print_json(runs_json(runs, options.directory));
  if (!runs.empty())
    print("{}", runs_text(runs, output_columns()));
  else
    print("{}: {}\n", options.directory,
          all == 0 ? "holds no runs; 'lockstep train JOB.yaml' makes one and says where"
                   : "none of its runs is as --where asks");
  return 0;
}

}  // namespace

void add_runs_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("runs", "List the runs in a folder, with their results");
  auto options = std::make_shared<RunsOptions>();
  command->add_option("directory", options->directory, "Folder of runs, or one of them")
      ->capture_default_str();
  command
      ->add_option("--sort", options->sort, "The best or newest first; accuracy is the best, last the last")
      ->check(CLI::IsMember(run_sort_keys()))
      ->capture_default_str();
  command->add_flag("--reverse", options->reverse, "The other way round");
  command
      ->add_option("--where", options->where,
                   "key=value: only runs whose job has this value, or state=finished; may be given again, "
                   "all must hold")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "One JSON object, with all numbers and the whole jobs");
  command->footer(
      "States: running, finished, interrupted (saved on request), failed, lost (its process or a rank is "
      "gone), damaged, no run. 'best % @' is the best accuracy, on held-out samples or the test set, and its "
      "epoch (RUN@best). A narrow terminal leaves columns out.\n"
      "Examples:\n"
      "  lockstep runs --sort accuracy --where model=net --where train.optimizer.lr=0.05\n"
      "  lockstep runs runs/sweep --json | jq '.runs[].best_accuracy'");
  on_choice(*command, action, [=] { return list_runs(*options); });
}

// lockstep compare A B...

namespace {

int compare(const std::vector<std::string>& paths, bool json) {
  const RunComparison comparison = compare_runs(Env::posix(), paths);
  if (json) return print_json(comparison_json(comparison));
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
  auto* command = app.add_subcommand("compare", "Compare runs: jobs, curves, results, first difference");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto json = std::make_shared<bool>(false);
  command->add_option("runs", *paths, "Run directories, two or more")->required();
  command->add_flag("--json", *json, "One JSON object, with every epoch of each run");
  command->footer(
      "Shows the keys whose values differ, the results of the runs, the first step whose fingerprints "
      "(trail.bin) differ from those of the first run, and the curves of accuracy and loss: in braille where "
      "the terminal is UTF-8, otherwise ASCII. 'lockstep diff' compares the weights of two checkpoints.\n"
      "Example:\n"
      "  lockstep compare runs/mnist runs/mnist-2");
  on_choice(*command, action, [=] { return compare(*paths, *json); });
}

// lockstep report RUN...

namespace {

/// Limit above which only the curves are compared, and no checkpoints are read.
constexpr std::size_t kMostModels = 4;

struct ReportCommandOptions {
  std::vector<std::string> runs;
  /// Empty: report.html, in the run where there is one; of other formats standard output.
  std::string output;
  std::string format = "html";
  std::string data;
  bool force = false, follow = false;
};

ReportOptions wanted_by(const ReportCommandOptions& options) {
  const bool has_models = options.format == "html" || options.format == "json";
  return {.models = has_models && options.runs.size() <= kMostModels,
          .data = options.data,
          .threads = std::min(available_cores(), 16)};
}

std::string report_as(const std::string& format, const nlohmann::ordered_json& report) {
  if (format == "html") return report_page(report);
  if (format == "json") return json_text_in_ascii(report) + "\n";
  return report_in_characters(report, output_columns(), output_terminal().unicode);
}

/// report.html of one run is ours, and drawn anew; a file that the user has named is theirs.
void write_report(const ReportCommandOptions& options, const std::string& text) {
  Env& env = Env::posix();
  const auto bytes = std::as_bytes(std::span(text));
  const bool in_run = options.output.empty() && options.runs.size() == 1;
  const std::string own = in_run ? options.runs.front() + "/report.html" : "report.html";
  const std::string path = options.output.empty() ? own : options.output;
  if (in_run) {
    require_own(env, path, EntryKind::kFile);
    replace_file(env, path, bytes);
  } else {
    write_output_file(env, path, bytes, options.force);
  }
  print("{}: {} bytes, {}{}\n", path, with_thousands(std::ssize(text)), counted(options.runs.size(), "run"),
        options.format == "html" ? "; open it in a browser" : "");
}

/// Draws the curves again and again while a run goes on.
int follow(const ReportCommandOptions& options) {
  constexpr std::chrono::seconds kPause{1};
  const ReportOptions wanted{.models = false};
  while (true) {
    const auto report = collect_report(Env::posix(), options.runs, wanted);
    const OutputTerminal output = output_terminal();
    const std::string text = printable(report_in_characters(report, output_columns(), output.unicode));
    const bool goes_on = std::any_of(report["runs"].begin(), report["runs"].end(),
                                     [](const auto& run) { return run["state"] == "running"; });
    if (output.redraws && output.escapes) {
      constexpr std::string_view kClear = "\x1b[H\x1b[J";
      write_out(std::string(kClear) + text);
    } else if (!goes_on) {
      write_out(text);
    }
    if (!goes_on) return 0;
    std::this_thread::sleep_for(kPause);
  }
}

/// A folder with an event file for each run, which TensorBoard shows as separate runs.
int write_for_tensorboard(const ReportCommandOptions& options) {
  if (options.output.empty())
    throw UsageError("--format tensorboard writes a folder for each run: name one for them with -o DIR");
  Env& env = Env::posix();
  const auto report = collect_report(env, options.runs, wanted_by(options));
  std::set<std::string> folders;
  for (const auto& run : report["runs"]) {
    std::string folder = options.output + "/" + run["name"].get<std::string>();
    while (!folders.insert(folder).second) folder += "-2";
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw IoError(fmt::format("{}: cannot be created: {}", folder, error.message()));
    for (const std::string& name : env.list(folder)) {
      if (!is_event_file(name)) continue;
      require_free_output(env, folder + "/" + name, options.force);
      env.remove_file(folder + "/" + name);
    }
    EventFile file(env, folder);
    read_metrics(run["directory"].get<std::string>() + "/metrics.jsonl",
                 [&](const MetricsEvent& event) { file.add_line(event.json()); });
    print("{}: {} for: tensorboard --logdir {}\n", folder,
          counted(run["steps_logged"].get<std::int64_t>(), "logged step"), shell_word(options.output));
  }
  return 0;
}

int report(const ReportCommandOptions& options) {
  if (options.follow) return follow(options);
  if (options.format == "tensorboard") return write_for_tensorboard(options);
  const std::string text =
      report_as(options.format, collect_report(Env::posix(), options.runs, wanted_by(options)));
  if (options.format == "html" || !options.output.empty())
    write_report(options, text);
  else
    print("{}", text);
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("report", "Draw runs on one page: curves, classes, mistakes, network, course");
  auto options = std::make_shared<ReportCommandOptions>();
  command->add_option("runs", options->runs, "Run directories; several are drawn over one another")
      ->required();
  command->add_option("-o,--output", options->output,
                      "File to write; default RUN/report.html, of several runs report.html");
  command
      ->add_option("--format", options->format,
                   "html; or what goes to standard output unless -o names a file: json, or terminal (curves "
                   "of characters); or tensorboard: event files in the folder that -o names")
      ->check(CLI::IsMember({"html", "json", "terminal", "tensorboard"}))
      ->capture_default_str();
  command
      ->add_flag("--follow", options->follow,
                 "Draw the curves with characters, again and again until no run goes on")
      ->excludes("--format")
      ->excludes("--output");
  command->add_flag("--force", options->force, "Replace that file if it is there already");
  command->add_option("--data", options->data,
                      "The directory that holds the data; default where the runs had them");
  command->footer(
      "The page is one file that loads nothing: it can be sent, printed and read on a phone. For up to four "
      "runs, the newest checkpoint is evaluated on the test set: confusion matrix, precision and recall of "
      "each class, the 36 surest mistakes as pictures.\n"
      "Examples:\n"
      "  lockstep report runs/mnist\n"
      "  lockstep report runs/mnist runs/mnist-2 -o both.html\n"
      "  lockstep report runs/mnist --format json > mnist.json\n"
      "  lockstep report runs/mnist runs/mnist-2 --format tensorboard -o boards\n"
      "  lockstep report runs/mnist --follow");
  on_choice(*command, action, [=] { return report(*options); });
}

}  // namespace lockstep
