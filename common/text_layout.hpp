// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Makes lines fit a width, which counts what a terminal shows and not bytes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Columns of UTF-8 text on a terminal. A byte that is not a character counts as one column.
int display_width(std::string_view text);

/// A part of a line, and how long it stays when the line must become narrower.
struct LineField {
  std::string text;
  int importance = 0;
  int gap = 2;  ///< spaces before it, except at the start of a line
};

/// The fields on one line, all of them.
std::string join(const std::vector<LineField>& fields);
/// The most important fields that fit on one line, in their order. The last one is cut where even it is too
/// wide.
std::string fit(std::vector<LineField> fields, int columns);

/// Breaks a line at spaces into lines of at most `columns`. A longer word, such as a path, gets a separate
/// line and is broken after a slash, or anywhere. Lines after the first are indented below the last
/// column of text (text after two spaces or more) if that leaves room, otherwise a little.
std::string fold(std::string_view line, int columns);
/// fold() for each line of a text.
std::string fold_lines(std::string_view text, int columns);

/// A paragraph of words as lines of at most `columns`, all of them indented alike. A number stays with the word after
/// it. No line break at the end.
std::string fill(std::string_view paragraph, int columns, int indent = 0);

/// A row for each entry of a table, a text for each column. Rows may lack the last ones.
using TableRows = std::vector<std::vector<std::string>>;

/// A table, a line for each row: columns as wide as their widest text, with two spaces between.
/// @param right  numbers of columns whose texts end below one another, as numbers do
std::string align_columns(const TableRows& rows, const std::vector<std::size_t>& right = {}, int indent = 0);

/// How wide the widest line is.
int widest_line(std::string_view text);

/// The text without spaces at its end.
std::string without_spaces_behind(std::string text);

/// At most `columns` wide: the middle of what is wider gives way to "...".
std::string clip_middle(std::string_view text, int columns);

/// A bar of `width` columns that is filled from the left; fraction from 0 to 1.
std::string bar(double fraction, int width, bool unicode);

/// "1:05", "2:03:04".
std::string format_duration(double seconds);
/// How long something took, short as that may be: "0.014 s", "0.48 s", "12.3 s".
std::string format_seconds(double seconds);
/// As format_seconds(), and from a minute on as format_duration().
std::string format_time(double seconds);
/// "0.0312"; from a million on "1.7e+12".
std::string format_loss(double loss);
/// "97.20": a share from 0 to 1 in percent. Less than 1 is at most 99.99, and more than 0 at least 0.01.
std::string percent_text(double share);
/// "60,000".
std::string with_thousands(std::int64_t value);

/// "rank" where the count is 1, otherwise "ranks"; "class" and "classes", "batch" and "batches".
std::string plural(std::integral auto count, std::string_view thing) {
  if (count == 1) return std::string(thing);
  const bool hisses =
      thing.ends_with("s") || thing.ends_with("x") || (thing.ends_with("ch") && !thing.ends_with("epoch"));
  return std::string(thing) + (hisses ? "es" : "s");
}
/// "0-2, 5": ascending numbers, neighbours as a range.
std::string ranges_text(const std::vector<int>& numbers);
/// "rank 3", "ranks 0-2, 5": which of the things.
std::string list_of(std::string_view thing, const std::vector<int>& numbers);
/// "1 rank", "60,000 images": every count that people read, so that no message says "1 ranks".
std::string counted(std::integral auto count, std::string_view thing) {
  return with_thousands(static_cast<std::int64_t>(count)) + " " + plural(count, thing);
}

}  // namespace lockstep
