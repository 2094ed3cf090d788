// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the commands describe themselves, as text without a form: --help, the reference pages, the manual pages and the
/// shells' completion are made from it.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A command that --help shows.
struct NamedCommand {
  std::string name;  ///< "bench step"
  const CLI::App* command;
};
/// Those of the program, in their order, each before its own.
std::vector<NamedCommand> commands_of(const CLI::App& app);

/// What an option takes that takes anything.
inline constexpr std::string_view kAnyText = "a text";

/// An option or an argument, as help shows it.
struct CommandOption {
  std::string name;                  ///< "-b,--min-bytes", or of an argument "job"
  std::vector<std::string> choices;  ///< of its value, if there are a few
  std::string takes;                 ///< "a whole number, 1 to 1024", "one of cpu, cuda"; "" for a flag
  std::string fallback;              ///< its default; "" where there is none
  std::string meaning;
  bool is_argument = false, required = false, many = false;

  bool takes_value() const { return !is_argument && !takes.empty(); }
  bool takes_more_than_text() const { return !takes.empty() && takes != kAnyText; }
};
/// Those of a command but --help: arguments first.
std::vector<CommandOption> options_of(const CLI::App& command);

/// "lockstep train [OPTIONS] job [overrides...]"
std::string usage_of(const NamedCommand& command);

/// What stands in a footer for all keys of a job.
inline constexpr std::string_view kKeysHere = "{keys}";
/// What stands in front of it.
inline constexpr const char* kKeysHeading =
    "\n\nKeys of a job file, with their defaults (in brackets: which optimisers, schedules or rules have a "
    "key, and their own defaults):\n{keys}";

/// Whether the footer of a command ends in them.
bool shows_keys(const CLI::App& command);
/// The footer that a command has of its own, without them.
std::string footer_of(const CLI::App& command);

/// A piece of a description or footer: words that may be folded anywhere, or lines that stay as they are.
struct TextPiece {
  std::string text;       ///< without a line break at the end
  bool as_is = false;     ///< examples, output
  bool is_apart = false;  ///< an empty line stands in front of it
};
/// Lines that begin with a space stay; others are joined up to an empty line, an "Example" or an "Exit code".
std::vector<TextPiece> pieces_of(const std::string& text);

/// The program's exit codes.
struct ExitMeaning {
  std::string_view code, meaning;
};
const std::vector<ExitMeaning>& exit_meanings();

/// --help that is as wide as the page; of commands with keys, all of them.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace lockstep
