// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Asks CLI11 what it knows of the commands, and lays help out.
#include "trainer/commands/command_text.hpp"

#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/config/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace lockstep {

namespace {

constexpr int kWidestText = 100;  ///< lines of prose become no longer, however wide the page is

void add_commands_below(const CLI::App& app, const std::string& prefix, std::vector<NamedCommand>& commands) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;
    commands.push_back({prefix + command->get_name(), command});
    add_commands_below(*command, commands.back().name + " ", commands);
  }
}

/// CLI11 tells kinds and checks in one text: "TEXT:{auto,cpu}", "INT:INT in [1 - 1024]".
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}', open);
  std::vector<std::string> choices;
  if (open == type.npos || close == type.npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

std::string range_in(const std::string& type) {
  constexpr std::string_view kRange = " in [", kBetween = " - ";
  const std::size_t open = type.find(kRange);
  if (open == type.npos) return "";
  const std::string range = type.substr(open + kRange.size(), type.find(']', open) - open - kRange.size());
  const std::size_t between = range.find(kBetween);
  return fmt::format(", {} to {}", range.substr(0, between), range.substr(between + kBetween.size()));
}

std::string takes_of(const std::string& type) {
  if (const auto choices = choices_in(type); !choices.empty())
    return fmt::format("one of {}", fmt::join(choices, ", "));
  if (type.starts_with("INT") || type.starts_with("UINT")) return "a whole number" + range_in(type);
  if (type.starts_with("FLOAT")) return "a number" + range_in(type);
  if (type.starts_with("BYTES")) return "a number of bytes, " + type.substr(type.rfind(':') + 1);
  return std::string(kAnyText);
}

CommandOption describe_option(const CLI::Option& option) {
  const bool takes = option.get_items_expected_max() > 0;
  const std::string type = option.get_type_name();
  return {.name = option.get_positional() ? option.get_name(true) : option.get_name(false, true),
          .choices = choices_in(type),
          .takes = takes ? takes_of(type) : "",
          .fallback = takes ? option.get_default_str() : "",
          .meaning = option.get_description(),
          .is_argument = option.get_positional(),
          .required = option.get_required(),
          .many = option.get_items_expected_max() > 1};
}

bool opens_a_piece(const std::string& line) {
  return line.starts_with("Example") || line.starts_with("Exit code") || line.starts_with(kKeysHere);
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
      const bool keys = piece.text == kKeysHere;
      page += keys          ? schema_help(columns)
              : piece.as_is ? piece.text
                            : fill(piece.text, std::min(columns, kWidestText));
      if (!keys) page += "\n";
    }
    return page;
  }
};

}  // namespace

std::vector<NamedCommand> commands_of(const CLI::App& app) {
  std::vector<NamedCommand> commands;
  add_commands_below(app, "", commands);
  return commands;
}

std::vector<CommandOption> options_of(const CLI::App& command) {
  std::vector<CommandOption> options;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty() && option != command.get_help_ptr())
      options.push_back(describe_option(*option));
  std::stable_partition(options.begin(), options.end(),
                        [](const CommandOption& option) { return option.is_argument; });
  return options;
}

std::string usage_of(const NamedCommand& command) {
  std::string usage = "lockstep " + command.name, arguments;
  bool has_options = false;
  for (const CommandOption& option : options_of(*command.command)) {
    has_options = has_options || !option.is_argument;
    if (!option.is_argument) continue;
    const std::string name = option.name + (option.many ? "..." : "");
    arguments += option.required ? " " + name : " [" + name + "]";
  }
  if (has_options) usage += " [OPTIONS]";
  if (!command.command->get_subcommands(nullptr).empty()) usage += " COMMAND";
  return usage + arguments;
}

bool shows_keys(const CLI::App& command) {
  return command.get_footer().ends_with(kKeysHeading);
}

std::string footer_of(const CLI::App& command) {
  const CLI::App* program = &command;
  while (program->get_parent() != nullptr) program = program->get_parent();
  const std::string footer = command.get_footer();
  if (program != &command && footer == program->get_footer()) return "";  // CLI11 hands it down
  return footer.substr(
      0, shows_keys(command) ? footer.size() - std::string_view(kKeysHeading).size() : footer.npos);
}

std::vector<TextPiece> pieces_of(const std::string& text) {
  std::vector<TextPiece> pieces;
  std::istringstream lines(text);
  bool is_apart = false, is_open = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      is_apart = !pieces.empty(), is_open = false;
      continue;
    }
    const bool as_is = line.front() == ' ';
    if (is_open && pieces.back().as_is == as_is && !opens_a_piece(line)) {
      pieces.back().text += (as_is ? "\n" : " ") + line;
    } else {
      pieces.push_back({.text = line, .as_is = as_is, .is_apart = is_apart});
    }
    is_apart = false, is_open = true;
  }
  return pieces;
}

const std::vector<ExitMeaning>& exit_meanings() {
  static const std::vector<ExitMeaning> meanings = {
      {"0", "ok"},
      {"1", "diff: they differ, prove: refuted, burn: wrong"},
      {"2", "usage or job file"},
      {"3", "burn: a rank is slow"},
      {"65", "damaged data"},
      {"66", "missing data"},
      {"69", "device, memory or threads not available"},
      {"70", "internal error or NaN"},
      {"71", "a peer was lost"},
      {"72", "numbers of a rank are wrong, and the rank is named"},
      {"74", "input/output"},
      {"75", "saved on request: run me again"},
      {"128 + n", "ended by signal n, unsaved"}};
  return meanings;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace lockstep
