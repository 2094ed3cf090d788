// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The one way to standard output and standard error: what comes from outside is shown and never obeyed.
/// (common/printable.hpp says what is escaped.)
#pragma once

#include "common/machine.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// Writes printable(text), in one piece. @throws std::system_error if the stream refuses it
void write_printable(std::FILE* stream, std::string_view text);

/// Formats and prints on standard output.
template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_printable(stdout, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Prints "lockstep: MESSAGE" on standard error: one line, with any message. It is one write, so that
/// ranks do not mix their lines. A bar on the screen is wiped first.
void print_error(std::string_view message) noexcept;

// Standard input, output and error as the program finds and leaves them.

/// Opens those of the three that are closed on /dev/null. Otherwise the next file that is opened gets the
/// number of standard output, and what is printed lands in it. Call before anything else.
void open_standard_streams();

/// Flushes standard output. For commands whose output is what they were started for.
/// @throws IoError if part of it was not written, unless its reader has gone (a pipe into head)
void finish_standard_output();

// Abilities of standard output: a person's terminal of some width, or a file or pipe that accepts any line.

inline constexpr int kAnyWidth = std::numeric_limits<int>::max();

struct OutputTerminal {
  bool is_terminal = false;  ///< a person looks at it
  bool redraws = false;      ///< and it can draw over a line: TERM is neither unset nor dumb
  bool escapes = false;  ///< and escape sequences are welcome: not with NO_COLOR or where ASCII is asked for
  bool unicode = false;  ///< more than ASCII: the locale is UTF-8, and TERM is not dumb
};

/// Looks at standard output and the environment (TERM, NO_COLOR, LC_ALL, LC_CTYPE, LANG). Under mpirun
/// the output of a rank is always a pseudo-terminal, even into a file, so mpirun's is looked at instead.
OutputTerminal output_terminal();

/// Characters that fit on a line now. Never so many that the cursor reaches the last column, where
/// terminals differ. The terminal is asked anew at each call, so that a window may change its size; if it
/// does not know, $COLUMNS counts, then 80. kAnyWidth for a file or pipe.
int output_columns();

/// How wide a page of text is: as the terminal; in a file or pipe $COLUMNS counts, then 80.
int page_columns();

/// Result of the last call of output_columns() (kAnyWidth before the first): for signal handlers.
int last_output_columns() noexcept;

// The line at the bottom of a terminal that is drawn over and over while something goes on. There is one on one screen.

/// Writes to standard output, in one piece, so that a launcher does not pass on half a line. Text that can no longer be
/// read is dropped: the terminal is gone, or `... | head -1` has seen enough. Any other reason is said once.
void write_out(const std::string& text);

/// From now on write_out() drops text that standard output has no room for within 0.1 s. For signal handlers:
/// mpirun reads nothing between the signal that stops it and the end of its ranks.
void drop_unread_output() noexcept;

/// The fields on one line, and, as long as they leave room for one, a bar after the first.
/// @param fraction  part of the bar that is filled, 0 to 1
std::string fit_with_bar(const std::vector<LineField>& fields, double fraction, int columns, bool unicode);

/// Wipes it, if there is one, before something else is written to the terminal. From any thread.
void wipe_bar();

/// Progress of a task: a bar on a terminal that can redraw, else a line every few seconds, or nothing.
class ProgressBar {
 public:
  enum class Style { kSilent, kPlain, kBar };
  /// How often a bar is drawn.
  static constexpr std::chrono::milliseconds kInterval{100};

  /// A bar where standard output can have one.
  /// @param otherwise  kPlain or kSilent   @param speaks  false: silent in any case
  explicit ProgressBar(Style otherwise, bool speaks = true)
      : ProgressBar(speaks ? otherwise : Style::kSilent, speaks ? output_terminal() : OutputTerminal{}) {}
  /// Draws for an output as described. @param style  used where it cannot redraw
  ProgressBar(Style style, const OutputTerminal& output);
  /// Wipes it.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  Style style() const { return style_; }
  /// Begins what is told of now. A bar is due at once.
  void restart();
  /// Since restart().
  double seconds() const { return seconds_since(start_); }
  /// True when it is time to draw. Call draw() then.
  bool is_due();
  /// @param fraction  part of a bar that is filled, 0 to 1
  void draw(const std::vector<LineField>& fields, double fraction) const;

 private:
  Style style_;
  OutputTerminal output_;
  Clock::time_point start_, last_;
};

}  // namespace lockstep
