// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep help [COMMAND | KEY | SECTION], lockstep reference PAGE, and what the shells' completion asks.
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/output_file.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/commands/command_text.hpp"
#include "trainer/commands/reference.hpp"
#include "trainer/config/job_schema.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

namespace lockstep {

// lockstep help

std::string help_of_key(const std::string& question) {
  std::string help;
  for (const JobKey* key : keys_asked_for(question))
    help += (help.empty() ? "" : "\n") + key_help(*key, page_columns());
  return help;
}

namespace {

[[noreturn]] void refuse_topic(const std::vector<NamedCommand>& commands, const std::string& topic) {
  std::vector<std::string_view> known;
  for (const NamedCommand& command : commands) known.push_back(command.name);
  std::string hint = topic.find('.') == topic.npos ? did_you_mean(topic, known) : key_hint(topic);
  throw UsageError(fmt::format(
      "there is no command, key or section {}{}; see 'lockstep --help' and 'lockstep train --help'",
      quoted_text(topic), hint));
}

int help(const CLI::App& app, const std::vector<std::string>& about) {
  const std::string topic = fmt::format("{}", fmt::join(about, " "));
  const auto commands = commands_of(app);
  const auto command = std::ranges::find(commands, topic, &NamedCommand::name);
  std::string text;
  if (topic.empty()) {
    text = app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
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
      app.add_subcommand("help", "Say all of a command, of a key of a job, or of a section of keys");
  auto about = std::make_shared<std::vector<std::string>>();
  command->add_option("about", *about,
                      "train, bench step, train.optimizer.lr, train.schedule, batch_size, ...");
  command->footer(
      "A key may be named as other programs name it.\n"
      "Examples:\n"
      "  lockstep help bench step\n"
      "  lockstep help train.optimizer.lr\n"
      "  lockstep help parallel");
  command->callback([=, &app, &action] { action = [=, &app] { return help(app, *about); }; });
}

// lockstep reference

namespace {

namespace fs = std::filesystem;

/// Those of an older version are replaced, where they are regular files.
void write_reference_file(const fs::path& path, std::string_view text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    throw IoError(fmt::format("{}: cannot be created: {}", path.parent_path().string(), error.message()));
  write_output_file(Env::posix(), path.string(), std::as_bytes(std::span(text)), true);
}

void write_manual_pages(const CLI::App& app, const fs::path& directory) {
  for (const auto& [name, text] : manual_pages(app)) write_reference_file(directory / name, text);
}

/// share/ of an installation: manual pages and completion, each where it is looked for.
void write_shared_files(const CLI::App& app, const fs::path& share) {
  write_manual_pages(app, share / "man/man1");
  for (const auto& [shell, place, text] : completion_scripts()) write_reference_file(share / place, text);
}

std::string script_for(const std::string& shell) {
  std::vector<std::string_view> shells;
  for (const CompletionScript& script : completion_scripts()) {
    if (script.shell == shell) return std::string(script.text);
    shells.push_back(script.shell);
  }
  throw UsageError(fmt::format("reference completion: say for which shell: {}", fmt::join(shells, ", ")));
}

int print_reference(const CLI::App& app, const std::string& page, const std::string& where) {
  if (page == "completion") {
    print("{}", script_for(where));
  } else if (page == "man" || page == "share") {
    if (where.empty()) throw UsageError(fmt::format("reference {}: say into which folder", page));
    page == "man" ? write_manual_pages(app, where) : write_shared_files(app, where);
  } else {
    if (!where.empty())
      throw UsageError(fmt::format("reference {}: goes to standard output, not to {}", page, where));
    print("{}", std::ranges::find(reference_pages(), page, &ReferencePage::name)->text(app));
  }
  return 0;
}

std::vector<std::string> names_of_pages() {
  std::vector<std::string> names;
  for (const ReferencePage& page : reference_pages()) names.emplace_back(page.name);
  names.insert(names.end(), {"man", "completion", "share"});
  return names;
}

}  // namespace

void add_reference_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("reference", "Print the reference pages, manual pages or shell completion");
  auto page = std::make_shared<std::string>(), where = std::make_shared<std::string>();
  command->add_option("page", *page, "What to print or write")
      ->required()
      ->check(CLI::IsMember(names_of_pages()));
  command->add_option("where", *where,
                      "Of man and share the folder to write into; of completion bash, zsh or fish");
  command->footer(
      "keys, commands, metrics and run-folder are the pages of docs/reference. man writes a\n"
      "page for each command into a folder. share writes man/man1 and the completion of all\n"
      "shells, each where it is looked for below PREFIX/share.\n"
      "Examples:\n"
      "  source <(lockstep reference completion bash)\n"
      "  lockstep reference share ~/.local/share");
  command->callback(
      [=, &app, &action] { action = [=, &app] { return print_reference(app, *page, *where); }; });

  auto* complete = app.add_subcommand("complete", "What may come next in a command line")->group("");
  auto words = std::make_shared<std::vector<std::string>>();
  complete->add_option("words", *words, "Of the command line, up to the cursor");
  complete->callback([=, &app, &action] {
    action = [=, &app] {
      print("{}", completions(app, *words));
      return 0;
    };
  });
}

}  // namespace lockstep
