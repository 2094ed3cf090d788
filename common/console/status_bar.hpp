// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The line at the bottom of a terminal that is drawn over and over while something goes on. There is one on one screen.
#pragma once

#include "common/console/terminal.hpp"
#include "common/text/text_layout.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep {

/// How often one is drawn.
inline constexpr std::chrono::milliseconds kBarInterval{100};

/// Writes to standard output, in one piece, so that a launcher does not pass on half a line. What can no longer be read
/// more is dropped: the terminal is gone, or `... | head -1` has seen enough. Any other reason is said once.
void write_out(const std::string& text);

/// The fields on one line, and, as long as they leave room for one, a bar behind the first.
/// @param fraction  of the bar that is filled, 0 to 1
std::string fit_with_bar(const std::vector<Field>& fields, double fraction, int columns, bool unicode);

/// Draws it over what is there. The cursor goes back to its start: wherever a window that becomes narrower puts the rest
/// of it, it stays in front, and what is printed next lies over it.
void draw_bar(const std::string& line, const OutputTerminal& output, int columns);

/// Wipes it, if there is one, before something else is written to the terminal. From any thread.
void wipe_bar();

}  // namespace lockstep
