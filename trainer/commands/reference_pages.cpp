// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The pages of docs/reference, in Markdown, and manual pages, of what the program says of itself.
#include "common/text_layout.hpp"
#include "trainer/commands/command_text.hpp"
#include "trainer/commands/reference.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/metrics.hpp"

#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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
          "number of ranks. A reader passes over "
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

// Manual pages in the language of man(7), of the commands as they describe themselves.

namespace {

/// Text that the formatter shows as it stands.
std::string roff(std::string_view text) {
  std::string safe;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else if (c == '\'') {
      safe += "\\(aq";
    } else {
      safe += c;
    }
    at_start = c == '\n';
  }
  return safe;
}

/// One argument of a request.
std::string quoted_roff(std::string_view text) {
  std::string safe;
  for (const char c : roff(text)) safe += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return "\"" + safe + "\"";
}

std::string heading(const std::string& name) {
  return fmt::format(".SH {}\n", name);
}

/// A term, and below it what it means.
std::string definition(std::string_view term, const std::string& meaning) {
  return fmt::format(".TP\n.B {}\n{}\n", quoted_roff(term), roff(meaning));
}

std::string roff_pieces(const std::string& text) {
  std::string page;
  bool is_first = true;
  for (const TextPiece& piece : pieces_of(text)) {
    if (!is_first) page += ".PP\n";
    is_first = false;
    page += piece.as_is ? fmt::format(".nf\n{}\n.fi\n", roff(piece.text)) : roff(piece.text) + "\n";
  }
  return page;
}

std::string page_name(const std::string& command) {
  std::string name = command.empty() ? "lockstep" : "lockstep-" + command;
  std::ranges::replace(name, ' ', '-');
  return name;
}

/// Without a date, so that the same program gives the same pages.
std::string page_head(const std::string& name, const std::string& what) {
  std::string capitals = name;
  std::ranges::transform(capitals, capitals.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" {} {}\n{}{} \\- {}\n", quoted_roff(capitals),
                     quoted_roff("Lockstep " LOCKSTEP_VERSION), quoted_roff("Lockstep Manual"),
                     heading("NAME"), roff(name), roff(what));
}

std::string see_also(const std::vector<std::string>& names) {
  std::vector<std::string> pages;
  for (const std::string& name : names) pages.push_back(fmt::format(".BR {} (1)", roff(name)));
  return heading("SEE ALSO") + fmt::format("{}\n", fmt::join(pages, ",\n"));
}

std::string exit_status() {
  std::string page = heading("EXIT STATUS");
  for (const auto& [code, meaning] : exit_meanings()) page += definition(code, std::string(meaning));
  return page;
}

std::string job_keys() {
  std::string page = heading("JOB KEYS");
  for (const JobKey& key : job_schema()) {
    page += definition(key.path, key.meaning + ".");
    for (const KeyFact& fact : facts_of(key))
      page += fmt::format(".br\n{}\n", roff(fmt::format("{}: {}", fact.name, fact.text)));
  }
  return page;
}

std::string options_part(const CLI::App& command) {
  std::string page;
  for (const CommandOption& option : options_of(command)) {
    std::string about = option.meaning + ".";
    if (option.takes_more_than_text()) about += fmt::format(" Takes {}.", option.takes);
    if (!option.fallback.empty()) about += fmt::format(" Default: {}.", option.fallback);
    page += definition(option.name, about);
  }
  page += definition("-h,--help", "Print this help message and exit.");
  return heading("OPTIONS") + page;
}

ManualPage page_of(const NamedCommand& named, const CLI::App& app) {
  const std::string name = page_name(named.name);
  const bool has_keys = shows_keys(*named.command);
  std::string text = page_head(name, named.command->get_description()) + heading("SYNOPSIS") + ".B " +
                     roff(usage_of(named)) + "\n";
  if (const std::string about = roff_pieces(footer_of(*named.command)); !about.empty())
    text += heading("DESCRIPTION") + about;
  text += options_part(*named.command);
  if (has_keys && named.name == "train") text += job_keys();
  text += exit_status();
  std::vector<std::string> others = {"lockstep"};
  if (has_keys && named.name != "train") others.push_back(page_name("train"));
  for (const NamedCommand& other : commands_of(app))
    if (other.name.starts_with(named.name + " ")) others.push_back(page_name(other.name));
  return {name + ".1", text + see_also(others)};
}

ManualPage page_of_program(const CLI::App& app) {
  std::string text = page_head("lockstep", "trains neural networks on many processes, bit for bit the same") +
                     heading("SYNOPSIS") + ".B lockstep\nCOMMAND [OPTIONS] [ARGUMENTS]\n" +
                     heading("DESCRIPTION") + roff_pieces(app.get_description()) + heading("COMMANDS");
  std::vector<std::string> names;
  for (const NamedCommand& command : commands_of(app)) {
    text += definition(command.name, command.command->get_description() + ".");
    names.push_back(page_name(command.name));
  }
  text += exit_status() + heading("FILES") + "In a run directory, where N stands for a number:\n";
  for (const RunFile& file : files_of_runs()) text += definition(file.path, std::string(file.meaning) + ".");
  return {"lockstep.1", text + see_also(names)};
}

}  // namespace

std::vector<ManualPage> manual_pages(const CLI::App& app) {
  std::vector<ManualPage> pages = {page_of_program(app)};
  for (const NamedCommand& command : commands_of(app)) pages.push_back(page_of(command, app));
  return pages;
}

}  // namespace lockstep
