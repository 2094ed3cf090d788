// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CLI11's messages, and better ones where those help less.
#include "trainer/commands/usage_message.hpp"

#include "trainer/config/option_hint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {
namespace {

/// The command that was given, and the name of the whole: "bench step". The program itself has none.
struct GivenCommand {
  const CLI::App* command;
  std::string name;
};

GivenCommand given_command(const CLI::App& app) {
  GivenCommand given{&app, ""};
  while (!given.command->get_subcommands().empty()) {
    given.command = given.command->get_subcommands().front();
    given.name += (given.name.empty() ? "" : " ") + given.command->get_name();
  }
  return given;
}

/// Which help has more: that of the command, if there is one.
std::string where_help_is(const CLI::App& app) {
  const std::string command = given_command(app).name;
  return "; see 'lockstep " + (command.empty() ? std::string() : command + " ") + "--help'";
}

/// What was given and no option of the command takes, in its order; CLI11's own message has it backwards.
std::vector<std::string> not_expected(const CLI::App& app, const CLI::ParseError& error) {
  const bool has_extras = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  return has_extras ? app.remaining(true) : std::vector<std::string>{};
}

/// --epochs 3 means train.epochs=3.
std::string meant_as_override(const CLI::App& app, const std::vector<std::string>& extras,
                              const std::vector<std::string>& arguments) {
  const std::string command = given_command(app).name;
  const bool has_overrides =
      command == "train" || command == "validate" || command == "bench step" || command == "doctor";
  const auto meant = override_for_option(arguments, extras);
  return has_overrides && meant ? "; keys of the job are given as key=value: did you mean " + *meant + "?"
                                : "";
}

/// What is wrong, in our words where CLI11's help less.
std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& extras) {
  if (!extras.empty()) return fmt::format("not expected: {}", fmt::join(extras, " "));
  const bool lacks_something = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  std::vector<std::string> choices;
  for (const CLI::App* choice : given_command(app).command->get_subcommands({}))
    choices.push_back(choice->get_name());
  if (!lacks_something || choices.empty()) return error.what();
  return fmt::format("say which: {}", fmt::join(choices, ", "));
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments) {
  const auto extras = not_expected(app, error);
  const std::string meant = meant_as_override(app, extras, arguments);
  return what_is_wrong(app, error, extras) + (meant.empty() ? where_help_is(app) : meant);
}

}  // namespace lockstep
