// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is wrong with a command line, in one line.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace lockstep {

/// What is wrong, and what would help: the key=value that was meant, or the command whose --help has more.
/// @param arguments  the command line that `app` could not parse, without the program's name
std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments);

}  // namespace lockstep
