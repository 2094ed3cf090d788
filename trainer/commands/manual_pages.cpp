// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Manual pages in the language of man(7), of the commands as they describe themselves.
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
