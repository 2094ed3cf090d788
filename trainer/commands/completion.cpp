// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Completion of a command line: commands, options, keys and their values, jobs, runs.
#include "common/output.hpp"
#include "common/printable.hpp"
#include "data/sets/catalogue.hpp"
#include "models/network.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/reports/run_history.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The answer as it grows: words that go on from what was typed.
struct Completion {
  std::string typed;
  std::vector<std::string> lines = {};

  void add(const std::string& word, std::string_view meaning = "") {
    if (word.starts_with(typed)) lines.push_back(fmt::format("{}\t{}\n", word, meaning));
  }
  void ask_for(std::string_view kind) { lines.push_back(fmt::format(":{}\n", kind)); }
};

/// The entries of a folder, with its path (or "") before their names. None if it cannot be read.
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error))
    paths.push_back(folder + entries->path().filename().string());
  std::ranges::sort(paths);
  return paths;
}

/// "a/b/c" → "a/b/"; "c" → "".
std::string folder_of(const std::string& typed) {
  return typed.substr(0, typed.rfind('/') + 1);
}

/// Runs whose names begin with the typed text: in its folder, and if there is none also in runs/.
std::vector<std::string> runs_from(const std::string& typed) {
  std::vector<std::string> folders = {folder_of(typed)};
  if (folders.front().empty()) folders.emplace_back("runs/");
  std::vector<std::string> runs;
  for (const std::string& folder : folders)
    for (const std::string& path : entries_of(folder))
      if (has_parts_of_run(Env::posix(), path)) runs.push_back(path);
  return runs;
}

void add_runs(Completion& answer) {
  for (const std::string& run : runs_from(answer.typed)) answer.add(run, "a run");
  answer.ask_for("folders");
}

/// RUN, RUN@best and RUN@last.
/// @param front  the key whose value it is, with its =
void add_checkpoints(Completion& answer, const std::string& front = "") {
  for (const std::string& run : runs_from(answer.typed.substr(front.size()))) {
    answer.add(front + run, "a run: its newest checkpoint");
    answer.add(front + run + "@best", "its checkpoint of the highest accuracy");
    answer.add(front + run + "@last", "its newest checkpoint");
  }
  answer.ask_for("folders");
}

/// Job files of the typed folder, and jobs that come with the program by name. Any file, if neither matches
/// the typed text.
void add_jobs(Completion& answer) {
  const std::string folder = folder_of(answer.typed);
  std::vector<std::string> files = entries_of(folder);
  std::erase_if(files, [](const fs::path& file) {
    return (file.extension() != ".yaml" && file.extension() != ".yml") || find_unprintable(file.string());
  });
  if (folder.empty())
    for (const std::string& job : shipped_jobs())
      if (const std::string name = fs::path(job).stem();
          std::ranges::find(files, name + ".yaml") == files.end())
        answer.add(name, "a job of Lockstep's own");
  for (const std::string& file : files) answer.add(file, "a file");
  answer.ask_for(answer.lines.empty() ? "files" : "folders");
}

void add_values_of_key(Completion& answer, const JobKey& key) {
  const std::string front = key.path + "=";
  for (const std::string& word : value_words(key)) answer.add(front + word);
  if (key.path == "model")
    for (const std::string& model : known_models()) answer.add(front + model, "a network of Lockstep's own");
  if (key.path == "train.initial_weights" || key.path == "run.resume") add_checkpoints(answer, front);
  if (takes_path(key)) answer.ask_for("files");
}

void add_keys(Completion& answer, std::string_view behind = "=") {
  const std::size_t equals = answer.typed.find('=');
  if (equals != answer.typed.npos) {
    if (const JobKey* key = find_job_key(answer.typed.substr(0, equals))) add_values_of_key(answer, *key);
    return;
  }
  for (const JobKey& key : job_schema()) answer.add(fmt::format("{}{}", key.path, behind), key.meaning);
}

void add_topics(Completion& answer, const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands(nullptr))
    if (!command->get_group().empty()) answer.add(command->get_name(), command->get_description());
  answer.add("keys", "all keys of a job file");
  add_keys(answer, "");
}

void add_sets(Completion& answer) {
  for (const std::string_view name : set_names()) answer.add(std::string(name), "a data set");
}

void add_devices(Completion& answer) {
  for (const std::string& word : value_words(*find_job_key("parallel.device"))) answer.add(word);
}

/// The options and arguments that help shows, but --help.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([&](const CLI::Option* option) {
    return !option->get_group().empty() && option != command.get_help_ptr();
  });
}

/// False for null, a flag and an argument.
bool takes_value(const CLI::Option* option) {
  return option != nullptr && !option->get_positional() && option->get_items_expected_max() > 0;
}

/// Those that a type names: "TEXT:{auto,cpu}" does, "INT:INT in [1 - 1024]" does not.
std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}', open);
  std::vector<std::string> choices;
  if (open == type.npos || close == type.npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

/// Completions by the name of an option or argument. Others take files.
using AddValues = void (*)(Completion&);
constexpr auto kValues = std::to_array<std::pair<const char*, AddValues>>({
    {"job", add_jobs},
    {"overrides", [](Completion& answer) { add_keys(answer); }},
    {"checkpoint", [](Completion& answer) { add_checkpoints(answer); }},
    {"a", [](Completion& answer) { add_checkpoints(answer); }},
    {"b", [](Completion& answer) { add_checkpoints(answer); }},
    {"run", add_runs},
    {"runs", add_runs},
    {"--take-over", add_runs},
    {"--where", [](Completion& answer) { add_keys(answer); }},
    {"--set", add_sets},
    {"--device", add_devices},
    {"directory", [](Completion& answer) { answer.ask_for("folders"); }},
    {"--data", [](Completion& answer) { answer.ask_for("folders"); }},
});

void add_values(Completion& answer, const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto choices = choices_in(type);
  for (const std::string& choice : choices) answer.add(choice);
  if (!choices.empty()) return;
  const auto* values =
      std::ranges::find_if(kValues, [&](const auto& entry) { return option.check_name(entry.first); });
  if (values != kValues.end()) return values->second(answer);
  constexpr std::array<std::string_view, 4> kNumbers{"INT", "UINT", "FLOAT", "BYTES"};
  if (std::ranges::none_of(kNumbers, [&](auto kind) { return type.starts_with(kind); }))
    answer.ask_for("files");
}

/// The option of this name, or null.
const CLI::Option* option_called(const CLI::App& command, const std::string& word) {
  return word.starts_with("-") ? command.get_option_no_throw(word) : nullptr;
}

void add_options(Completion& answer, const CLI::App& command) {
  for (const CLI::Option* option : options_of(command))
    if (!option->get_positional()) answer.add(option->get_name(), option->get_description());
  answer.add("--help", "what this command does, and its options");
}

/// The command that the words begin with, and how many of them name it.
std::pair<const CLI::App*, std::size_t> command_in(const CLI::App& app,
                                                   const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::size_t count = 0;
  for (; count + 1 < words.size(); ++count) {
    const auto below = command->get_subcommands(nullptr);
    const auto next = std::ranges::find(below, words[count], [](const CLI::App* a) { return a->get_name(); });
    if (next == below.end()) break;
    command = *next;
  }
  return {command, count};
}

/// The argument at the end of these words, or null: none is expected there.
const CLI::Option* argument_at_end(const CLI::App& command, const std::vector<std::string>& words,
                                   std::size_t first) {
  std::size_t number = 0;
  for (std::size_t i = first; i + 1 < words.size(); ++i)
    if (takes_value(option_called(command, words[i])))
      ++i;
    else if (!words[i].starts_with("-"))
      ++number;
  for (const CLI::Option* option : options_of(command))
    if (option->get_positional() && (option->get_items_expected_max() > 1 || number-- == 0)) return option;
  return nullptr;
}

/// Candidates for the last word, a line each: the word, a tab, its meaning. A line ":files" or ":folders" asks the
/// shell for those, too.
/// @param words  after the program's name, up to the cursor; the last one may be empty
std::string completions(const CLI::App& app, const std::vector<std::string>& words) {
  Completion answer{words.empty() ? "" : words.back()};
  const auto [command, first] = command_in(app, words);
  const CLI::Option* before =
      words.size() < first + 2 ? nullptr : option_called(*command, words[words.size() - 2]);
  const CLI::Option* argument = argument_at_end(*command, words, first);
  for (const CLI::App* next : command->get_subcommands(nullptr))
    if (!next->get_group().empty()) answer.add(next->get_name(), next->get_description());
  if (takes_value(before)) {
    add_values(answer, *before);
  } else if (answer.typed.starts_with("-")) {
    add_options(answer, *command);
  } else if (argument != nullptr && argument->get_name() == "about") {
    add_topics(answer, app);
  } else if (argument != nullptr) {
    add_values(answer, *argument);
  }
  return fmt::format("{}", fmt::join(answer.lines, ""));
}

}  // namespace

void add_complete_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("complete", "Complete a command line")->group("");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("words", *words, "Words of the command line, up to the cursor");
  on_choice(*command, action, [=, &app] {
    print("{}", completions(app, *words));
    return 0;
  });
}

}  // namespace lockstep
