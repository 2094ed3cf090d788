// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A terminal of some width for programs that are tested in one, and what its screen would show.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::testing {

struct TerminalRun {
  int columns = 80;
  std::string environment;     ///< "TERM=xterm LC_ALL=C"
  int columns_later = 0;       ///< the window's new width as soon as `resize_at` was printed; 0: it stays
  std::string resize_at = {};  ///< part of the output
  std::string stop_at = {};    ///< Ctrl-C is typed once this has come after the new width; empty: never
};

struct TerminalOutput {
  int exit_code = -1;
  std::string bytes;         ///< as they came
  std::string after_resize;  ///< those of them that came after it
};

/// Runs a shell command in a terminal. It is killed after `seconds`.
TerminalOutput run_in_terminal(const TerminalRun& run, const std::string& command, int seconds = 120);

/// The lines that printing these bytes leaves on an endless screen that never wraps: carriage returns
/// overwrite, ESC [ J wipes. `widest` becomes the most columns that the cursor ever went to, a bar's
/// included.
/// @throws std::runtime_error  for any other escape sequence
std::vector<std::string> lines_on_screen(const std::string& bytes, int& widest);

}  // namespace lockstep::testing
