// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The pages of docs/reference.
#include "common/text_layout.hpp"
#include "trainer/commands/command_text.hpp"
#include "trainer/commands/reference.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/metrics.hpp"

#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {

namespace {

constexpr int kPageColumns = 120;
constexpr const char* kMade = "<!-- Made by tests/reference --write from what the program knows. -->\n";

std::string title(const std::string& text) {
  return fmt::format("{}# {}\n", kMade, text);
}

std::string paragraph(const std::string& text) {
  return fill(text, kPageColumns) + "\n";
}

std::string item(const std::string& text) {
  return fold("- " + text, kPageColumns) + "\n";
}

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string as_code(std::string_view text) {
  return fmt::format("`{}`", text);
}

/// A sentence of Markdown: what it would obey stands for itself.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<' || c == '*' || c == '|') safe += '\\';
    safe += c;
  }
  return safe;
}

using Cells = std::vector<std::string>;
std::string row(const Cells& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string table(const Cells& head, const std::vector<Cells>& rows) {
  std::string text = row(head) + "|";
  for (std::size_t i = 0; i < head.size(); ++i) text += "---|";
  text += "\n";
  for (const Cells& cells : rows) text += row(cells);
  return text;
}

// keys.md

std::string fact_text(const KeyFact& fact) {
  const bool is_code = fact.name == "example";
  return fmt::format("{}: {}", capital(std::string(fact.name)),
                     is_code ? as_code(fact.text) : escaped(fact.text));
}

std::string keys_page(const CLI::App& /*app*/) {
  std::string page = title("Keys of a job") +
                     paragraph(
                         "All keys of a job file, in its order. `lockstep help KEY` says the same of one, "
                         "`lockstep train --help` lists them. On a command line a key is given as "
                         "`key=value`, in a file as YAML: `train.epochs` is `epochs` below `train`.") +
                     "\n" +
                     paragraph(
                         "*Read by* names the optimisers, schedules, rules or strategies that have the key; "
                         "a key without it is read in every job. *Elsewhere* are its names in other "
                         "programs, which messages know. *Weights* says what becomes of a run that goes on "
                         "with another value.");
  std::string section = "-";
  for (const JobKey& key : job_schema()) {
    if (key.section() != section) {
      section = key.section();
      page += fmt::format("\n## {}\n", section.empty() ? "The top of the file" : section);
    }
    page += fmt::format("\n### {}\n{}", key.path, paragraph(escaped(capital(key.meaning)) + "."));
    page += "\n";
    for (const KeyFact& fact : facts_of(key)) page += item(fact_text(fact));
  }
  return page;
}

// commands.md

std::string option_item(const CommandOption& option) {
  std::vector<std::string> about;
  if (option.takes_more_than_text()) about.push_back(option.takes);
  if (option.required) about.emplace_back("required");
  if (option.many) about.emplace_back("may be several");
  if (!option.fallback.empty()) about.push_back("default " + option.fallback);
  return item(fmt::format("{}{}: {}", as_code(option.name),
                          about.empty() ? "" : escaped(fmt::format(" ({})", fmt::join(about, "; "))),
                          escaped(option.meaning)));
}

std::string prose(const std::string& text) {
  std::string page;
  for (const TextPiece& piece : pieces_of(text)) {
    page += "\n";
    page += piece.as_is ? fmt::format("<!-- output -->\n```\n{}\n```\n", piece.text)
                        : paragraph(escaped(piece.text));
  }
  return page;
}

std::string command_section(const NamedCommand& named) {
  std::string page = fmt::format("\n## lockstep {}\n{}\n<!-- output -->\n```\n{}\n```\n", named.name,
                                 paragraph(escaped(named.command->get_description()) + "."), usage_of(named));
  const auto options = options_of(*named.command);
  if (!options.empty()) page += "\n";
  for (const CommandOption& option : options) page += option_item(option);
  page += prose(footer_of(*named.command));
  if (shows_keys(*named.command)) page += "\nThe keys are those of [keys.md](keys.md).\n";
  return page;
}

std::string commands_page(const CLI::App& app) {
  std::string page = title("Commands") +
                     paragraph(
                         "All commands with their options, as `--help` of each shows them. `lockstep help "
                         "COMMAND` shows it, too, and `man lockstep-train` where the manual pages are "
                         "installed.") +
                     "\n## Exit codes\n";
  std::vector<Cells> codes;
  for (const auto& [code, meaning] : exit_meanings())
    codes.push_back({std::string(code), std::string(meaning)});
  page += table({"code", "meaning"}, codes);
  page +=
      "\n" + paragraph("[stopping.md](../stopping.md) says more, and what becomes of them behind launchers.");
  for (const NamedCommand& command : commands_of(app)) page += command_section(command);
  return page;
}

// metrics.md and run-folder.md

std::string metrics_page(const CLI::App& /*app*/) {
  std::string page =
      title("metrics.jsonl") +
      paragraph(
          "One JSON object a line, appended in order, never a step twice. `event` says which of these it is. "
          "Under `parallel.determinism: world` everything but times and facts of ranks is equal for any "
          "number of ranks. `lockstep report RUN --format csv` makes a table of it. A reader passes over "
          "events and fields that it does not know: new ones may come.");
  for (const RunEvent& event : events_of_runs()) {
    page += fmt::format("\n## {}\n{}\n", event.name, paragraph(std::string(event.when)));
    std::vector<Cells> rows;
    for (const EventField& field : event.fields)
      rows.push_back({as_code(field.name), std::string(field.type), std::string(field.unit),
                      escaped(field.meaning), escaped(field.when)});
    page += table({"field", "type", "unit", "what it is", "when"}, rows);
  }
  return page;
}

std::string run_folder_page(const CLI::App& /*app*/) {
  std::vector<Cells> rows;
  for (const RunFile& file : files_of_runs())
    rows.push_back({as_code(file.path), escaped(file.meaning), escaped(file.when)});
  return title("The run directory") +
         paragraph(
             "All files of a run. N stands for a number. A file is replaced as a whole, under its name with "
             "`.tmp` at the end first; `metrics.jsonl`, `trail.bin` and the log are appended to. A run may "
             "be copied or moved while no process uses it.") +
         "\n" + table({"file", "what it is", "when"}, rows) + "\n" +
         paragraph(
             "[checkpoint-format.md](../checkpoint-format.md) and [trail-format.md](../trail-format.md) "
             "describe those files to the byte, [metrics.md](metrics.md) every event, "
             "[runs.md](../runs.md) how runs are named.");
}

}  // namespace

const std::vector<ReferencePage>& reference_pages() {
  static const std::vector<ReferencePage> pages = {{"keys", keys_page},
                                                   {"commands", commands_page},
                                                   {"metrics", metrics_page},
                                                   {"run-folder", run_folder_page}};
  return pages;
}

}  // namespace lockstep
