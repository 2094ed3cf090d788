// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is made from the program's own descriptions: the pages of docs/reference, manual pages, shell completion.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A page of docs/reference, in Markdown.
struct ReferencePage {
  std::string_view name;  ///< "keys"
  std::string (*text)(const CLI::App& app);
};
/// keys, commands, metrics, run-folder: trainer/commands/reference_pages.cpp.
const std::vector<ReferencePage>& reference_pages();

/// A manual page for man(1).
struct ManualPage {
  std::string name;  ///< "lockstep-train.1"
  std::string text;
};
/// Of the program, and of each of its commands.
std::vector<ManualPage> manual_pages(const CLI::App& app);

/// A shell that can complete our commands, and where it looks for the script, below share/.
struct CompletionScript {
  std::string_view shell, place, text;
};
/// bash, zsh, fish. The scripts ask the program that stands in the command line: `lockstep complete -- WORD...`.
const std::vector<CompletionScript>& completion_scripts();

/// What may stand in place of the last word, a line each: the word, a tab, what it means. A line ":files" or ":folders"
/// asks the shell for those, too.
/// @param words  behind the program's name, up to the cursor; the last one may be empty
std::string completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace lockstep
