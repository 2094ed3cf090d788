// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lays help out, as wide as the page is; lockstep help [COMMAND | KEY | SECTION].
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/config/job_schema.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>

namespace lockstep {

namespace {

constexpr int kWidestText = 100;  ///< lines of prose become no longer, however wide the page is

/// A piece of a description or footer: words that may be folded anywhere, or lines that stay as they are.
struct TextPiece {
  std::string text;       ///< without a line break at the end
  bool as_is = false;     ///< examples, output
  bool is_apart = false;  ///< an empty line precedes it
};

/// Splits a text: lines that begin with a space stay. Others are joined up to an empty line, an "Example" or an "Exit code".
std::vector<TextPiece> pieces_of(const std::string& text) {
  std::vector<TextPiece> pieces;
  std::istringstream lines(text);
  bool is_apart = false, is_open = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      is_apart = !pieces.empty(), is_open = false;
      continue;
    }
    const bool as_is = line.front() == ' ',
               opens_a_piece = line.starts_with("Example") || line.starts_with("Exit code");
    if (is_open && pieces.back().as_is == as_is && !opens_a_piece) {
      pieces.back().text += (as_is ? "\n" : " ") + line;
    } else {
      pieces.push_back({.text = line, .as_is = as_is, .is_apart = is_apart});
    }
    is_apart = false, is_open = true;
  }
  return pieces;
}

/// " (not with --json, --pictures)"; "" where there are no such options.
std::string beside(const char* how, const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return names.empty() ? "" : fmt::format(" ({} {})", how, fmt::join(names, ", "));
}

class HelpFormatter : public CLI::Formatter {
 public:
  /// Names and meaning in two columns, at least two spaces apart. CLI11's own has what excludes an option in the first.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string takes = make_option_opts(option);
    takes.resize(std::min({takes.size(), takes.find(" Needs:"), takes.find(" Excludes:")}));
    std::string line = "  " + make_option_name(option, is_positional) + takes;
    const std::string meaning = make_option_desc(option) + beside("needs", option->get_needs()) +
                                beside("not with", option->get_excludes());
    if (meaning.empty()) return line + "\n";
    const std::size_t width = get_column_width(), used = line.size();
    return line + (used + 2 > width ? "\n" + std::string(width, ' ') : std::string(width - used, ' ')) +
           meaning + "\n";
  }
  std::string make_description(const CLI::App* app) const override {
    const std::string text = CLI::Formatter::make_description(app);
    return laid_out(text) + (text.ends_with("\n\n") ? "\n" : "");
  }
  std::string make_footer(const CLI::App* app) const override { return laid_out(app->get_footer()); }

 private:
  static std::string laid_out(const std::string& text) {
    const int columns = page_columns();
    std::string page;
    for (const TextPiece& piece : pieces_of(text)) {
      if (piece.is_apart) page += "\n";
      page += (piece.as_is ? piece.text : fill(piece.text, std::min(columns, kWidestText))) + "\n";
    }
    return page;
  }
};

/// Those that --help shows.
void add_commands_below(const CLI::App& app, const std::string& prefix, std::vector<NamedCommand>& commands) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;
    commands.push_back({prefix + command->get_name(), command});
    add_commands_below(*command, commands.back().name + " ", commands);
  }
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::string help_of_key(const std::string& question) {
  std::string help;
  for (const JobKey* key : keys_asked_for(question))
    help += (help.empty() ? "" : "\n") + key_help(*key, page_columns());
  return help;
}

namespace {

constexpr const char* kKeysHeading =
    "Keys of a job file, with their defaults (in brackets: which optimisers, schedules or rules have a "
    "key, and their own defaults):";

[[noreturn]] void refuse_topic(const std::vector<NamedCommand>& commands, const std::string& topic) {
  const std::string hint = topic.find('.') == topic.npos
                               ? did_you_mean(topic, names_of(commands, &NamedCommand::name))
                               : key_hint(topic);
  throw UsageError(
      fmt::format("there is no command, key or section {}{}; see 'lockstep --help' and 'lockstep help keys'",
                  quoted_text(topic), hint));
}

int help(const CLI::App& app, const std::vector<std::string>& about) {
  const std::string topic = fmt::format("{}", fmt::join(about, " "));
  std::vector<NamedCommand> commands;
  add_commands_below(app, "", commands);
  const auto command = std::ranges::find(commands, topic, &NamedCommand::name);
  std::string text;
  if (topic.empty()) {
    text = app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
  } else if (topic == "keys") {
    text = fill(kKeysHeading, page_columns()) + "\n" + schema_help(page_columns());
  } else if (command != commands.end()) {
    const std::string before = "lockstep " + command->name;
    text = command->command->help(before.substr(0, before.rfind(' ')));
  } else {
    text = help_of_key(topic);
  }
  if (text.empty()) refuse_topic(commands, topic);
  print("{}", fold_lines(text, page_columns()));
  return 0;
}

}  // namespace

void add_help_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("help", "Describe a command, all keys of a job, a section of them, or one");
  auto about = std::make_shared<std::vector<std::string>>();
  command->add_option("about", *about,
                      "keys, train, bench step, train.optimizer.lr, train.schedule, batch_size, ...");
  command->footer(
      "A key may be named as other programs name it.\n"
      "Examples:\n"
      "  lockstep help keys                  all keys of a job file\n"
      "  lockstep help bench step\n"
      "  lockstep help train.optimizer.lr\n"
      "  lockstep help parallel");
  on_choice(*command, action, [=, &app] { return help(app, *about); });
}

}  // namespace lockstep
