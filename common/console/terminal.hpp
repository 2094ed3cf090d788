// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What standard output can show: a person's terminal of some width, or a file or pipe that takes any line.
#pragma once

#include <limits>

namespace lockstep {

inline constexpr int kAnyWidth = std::numeric_limits<int>::max();

struct OutputTerminal {
  bool is_terminal = false;  ///< a person looks at it
  bool redraws = false;      ///< and it can draw over a line: TERM is neither unset nor dumb
  bool escapes = false;  ///< and escape sequences are welcome: not with NO_COLOR or where ASCII is asked for
  bool unicode = false;  ///< more than ASCII: the locale is UTF-8, and TERM is not dumb
};

/// Looks at standard output and the environment (TERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG). Under mpirun a
/// rank's own output is always a pseudo-terminal, even into a file, so mpirun's is looked at instead.
OutputTerminal output_terminal();

/// How many characters fit on a line now: never so many that the cursor reaches the last column, where
/// terminals differ. The terminal is asked anew at each call, so that a window may change its size; where it
/// does not know, $COLUMNS counts, then 80. kAnyWidth for a file or pipe.
int output_columns();

/// What the last call of output_columns() said (kAnyWidth before the first): for signal handlers.
int last_output_columns() noexcept;

}  // namespace lockstep
