// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep report RUN...
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/terminal.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/inspect.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/reports/report.hpp"
#include "trainer/run/event_file.hpp"

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
namespace {

/// Of more runs at once the curves are compared, and checkpoints are not read.
constexpr std::size_t kMostModels = 4;

struct ReportCommandOptions {
  std::vector<std::string> runs;
  std::string
      output;  ///< empty: report.html, in the run where there is one; of other formats standard output
  std::string format = "html";
  std::string data;
  bool force = false, follow = false;
};

ReportOptions wanted_by(const ReportCommandOptions& options) {
  const bool has_models = options.format == "html" || options.format == "tensorboard" ||
                          options.format == "json" || options.format == "md";
  return {.models = has_models && options.runs.size() <= kMostModels,
          .data = options.data,
          .threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U)),
          .points = options.format == "csv" ? 0 : ReportOptions{}.points};
}

std::string report_as(const std::string& format, const nlohmann::ordered_json& report) {
  if (format == "html") return report_page(report);
  if (format == "json") return json_text_in_ascii(report) + "\n";
  if (format == "csv") return report_csv(report);
  if (format == "md") return report_markdown(report);
  if (format == "svg") return report_svg(report);
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

/// A folder with an event file for each run, by which TensorBoard tells them apart.
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
      if (!options.force)
        throw IoError(fmt::format("{}: holds event files already; --force replaces them", folder));
      env.remove_file(folder + "/" + name);
    }
    write_event_file(env, run, folder);
    print("{}: {} for 'tensorboard --logdir {}'\n", folder,
          counted(run["steps_logged"].get<int>(), "logged step"), options.output);
  }
  return 0;
}

int report(const ReportCommandOptions& options) {
  if (options.follow) return follow(options);
  if (options.format == "tensorboard") return write_for_tensorboard(options);
  const std::string text =
      report_as(options.format, collect_report(Env::posix(), options.runs, wanted_by(options)));
  if (options.format == "html" || !options.output.empty()) {
    write_report(options, text);
  } else {
    print("{}", text);
  }
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
      ->add_option(
          "--format", options->format,
          "html; or what goes to standard output unless -o names a file: json, csv (every step), md, svg, "
          "terminal (curves of characters); or tensorboard: event files in the folder that -o names")
      ->check(CLI::IsMember({"html", "json", "csv", "md", "svg", "terminal", "tensorboard"}))
      ->capture_default_str();
  command
      ->add_flag("--follow", options->follow,
                 "Draw the curves with characters, again and again until no run goes on")
      ->excludes("--format");
  command->add_flag("--force", options->force, "Replace that file if it is there already");
  command->add_option("--data", options->data,
                      "The directory that holds the data; default where the runs had them");
  command->footer(
      "The page is one file that loads nothing: it can be sent, printed and read on a phone.\n"
      "Of up to four runs, the newest checkpoint is evaluated on the test set: confusion matrix,\n"
      "precision and recall of each class, the 36 surest mistakes as pictures.\n"
      "Examples:\n"
      "  lockstep report runs/mnist\n"
      "  lockstep report runs/mnist runs/mnist-2 -o both.html\n"
      "  lockstep report runs/mnist --format csv > mnist.csv\n"
      "  lockstep report runs/mnist runs/mnist-2 --format tensorboard -o boards\n"
      "  lockstep report runs/mnist --follow");
  command->callback([=, &action] { action = [=] { return report(*options); }; });
}

}  // namespace lockstep
