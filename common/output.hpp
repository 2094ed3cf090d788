// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The one way to standard output and standard error: what comes from outside is shown and never obeyed.
/// (common/printable.hpp says what is escaped.)
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace lockstep {

/// Writes printable(text), in one piece. @throws std::system_error if the stream does not take it
void write_printable(std::FILE* stream, std::string_view text);

/// Formats and prints on standard output.
template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_printable(stdout, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Prints "lockstep: MESSAGE" on standard error: one line whatever the message holds, as one write, so that
/// ranks do not mix their lines.
void print_error(std::string_view message) noexcept;
/// What print_error does first, on whatever thread it is called: for what is on the screen and must go.
void call_before_errors(void (*action)());

// Standard input, output and error as the program finds and leaves them.

/// Opens those of the three that are closed on /dev/null. Otherwise the next file that is opened gets the
/// number of standard output, and what is printed lands in it. Call before anything else.
void open_standard_streams();

/// Flushes standard output. For commands whose output is what they were started for.
/// @throws IoError if part of it was not written, unless its reader has gone (a pipe into head)
void finish_standard_output();

}  // namespace lockstep
