// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep report RUN...
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/inspect.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/report/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

/// Of more runs at once the curves are compared, and checkpoints are not read.
constexpr std::size_t kMostModels = 4;

struct ReportCommandOptions {
  std::vector<std::string> runs;
  std::string output;  ///< empty: report.html, in the run where there is one
  std::string data;
  bool force = false;
};

int report(const ReportCommandOptions& options) {
  Env& env = Env::posix();
  const ReportOptions wanted{
      .models = options.runs.size() <= kMostModels,
      .data = options.data,
      .threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U))};
  const std::string page = report_page(collect_report(env, options.runs, wanted));
  const auto bytes = std::as_bytes(std::span(page));
  const std::string own = options.runs.size() == 1 ? options.runs.front() + "/report.html" : "report.html";
  if (options.output.empty() && options.runs.size() == 1) {
    require_own(env, own, EntryKind::kFile);
    replace_file(env, own, bytes);
  } else {
    write_output_file(env, options.output.empty() ? own : options.output, bytes, options.force);
  }
  print("{}: {} bytes, {}; open it in a browser\n", options.output.empty() ? own : options.output,
        with_thousands(std::ssize(page)), counted(options.runs.size(), "run"));
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
  command->add_flag("--force", options->force, "Replace that file if it is there already");
  command->add_option("--data", options->data,
                      "The directory that holds the data; default where the runs had them");
  command->footer(
      "The page is one file that loads nothing: it can be sent, printed and read on a phone.\n"
      "Of up to four runs, the newest checkpoint is evaluated on the test set: confusion matrix,\n"
      "precision and recall of each class, the 36 surest mistakes as pictures.\n"
      "Examples:\n"
      "  lockstep report runs/mnist\n"
      "  lockstep report runs/mnist runs/mnist-2 -o both.html");
  command->callback([=, &action] { action = [=] { return report(*options); }; });
}

}  // namespace lockstep
