// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Widths by characters, folds at spaces, and the forms that durations, losses and large numbers have.
#include "common/text_layout.hpp"

#include "common/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace lockstep {
namespace {

constexpr std::size_t kLittleIndent = 2;
constexpr int kRoomForText = 28;  ///< below this a column of text is too narrow to read

/// A character, by its bytes in the text, and its columns.
struct Cell {
  std::string_view bytes;
  int width;
  bool is(char c) const { return bytes.size() == 1 && bytes[0] == c; }
};
using Cells = std::vector<Cell>;

struct Range {
  char32_t first, last;
};

bool in_any(const char32_t code, const std::vector<Range>& ranges) {
  return std::ranges::any_of(ranges, [&](const Range& r) { return code >= r.first && code <= r.last; });
}

/// Not wcwidth(): it knows only the characters of the locale that the program was started in.
int columns_of(const char32_t code) {
  static const std::vector<Range> combining = {
      {0x300, 0x36F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};
  static const std::vector<Range> wide = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  if (in_any(code, combining)) return 0;
  return in_any(code, wide) ? 2 : 1;
}

Cells cells_of(std::string_view text) {
  Cells cells;
  for (std::size_t at = 0; at < text.size(); at += cells.back().bytes.size()) {
    const CodePoint character = decode_utf8(text, at);
    cells.push_back(
        {text.substr(at, std::max<std::size_t>(character.bytes, 1)), columns_of(character.value)});
  }
  return cells;
}

int width_of(const Cells& cells, std::size_t begin, std::size_t end) {
  int width = 0;
  for (; begin < end; ++begin) width += cells[begin].width;
  return width;
}

std::string text_of(const Cells& cells, std::size_t begin, std::size_t end) {
  std::string text;
  for (; begin < end; ++begin) text += cells[begin].bytes;
  return text;
}

/// The end of the longest piece from `begin` on that has at most `columns`, but one character at least.
std::size_t end_of_piece(const Cells& cells, std::size_t begin, std::size_t end, int columns) {
  std::size_t at = begin;
  for (int width = 0; at < end && (width += cells[at].width) <= columns;) ++at;
  return std::max(at, begin + 1);
}

/// Place where a word that is wider than `columns` breaks: after a slash, otherwise into pieces of one length.
std::size_t break_in_word(const Cells& cells, std::size_t begin, std::size_t end, int columns) {
  const std::size_t furthest = end_of_piece(cells, begin, end, columns);
  for (std::size_t at = furthest; at > begin + 1; --at)
    if (cells[at - 1].is('/')) return at;
  const int width = width_of(cells, begin, end);
  const int pieces = (width + columns - 1) / columns;
  return end_of_piece(cells, begin, end, (width + pieces - 1) / pieces);
}

std::size_t end_of_word(const Cells& cells, std::size_t begin) {
  while (begin < cells.size() && !cells[begin].is(' ')) ++begin;
  return begin;
}

std::size_t skip_spaces(const Cells& cells, std::size_t begin) {
  while (begin < cells.size() && cells[begin].is(' ')) ++begin;
  return begin;
}

/// End of the first line of the text from `begin` on. `begin` is the start of a word, or of the whole line.
std::size_t end_of_line(const Cells& cells, std::size_t begin, int columns) {
  std::size_t end = begin;
  for (std::size_t at = begin; at < cells.size();) {
    const std::size_t word_end = end_of_word(cells, skip_spaces(cells, at));
    if (width_of(cells, begin, word_end) > columns) break;
    end = at = word_end;
  }
  return end > begin ? end
                     : break_in_word(cells, begin, end_of_word(cells, skip_spaces(cells, begin)), columns);
}

/// How far the lines after the first are indented.
std::size_t hanging_indent(const Cells& cells, int columns) {
  const std::size_t leading = skip_spaces(cells, 0);
  std::size_t column = 0;
  for (std::size_t at = leading; at + 2 < cells.size(); ++at) {
    const bool opens_a_column = cells[at].is(' ') && cells[at + 1].is(' ') && !cells[at + 2].is(' ');
    if (opens_a_column) column = static_cast<std::size_t>(width_of(cells, 0, at + 2));
  }
  const bool readable = column > 0 && columns - static_cast<int>(column) >= kRoomForText;
  return readable ? column : std::min(leading + kLittleIndent, static_cast<std::size_t>(columns) / 2);
}

}  // namespace

int display_width(std::string_view text) {
  const Cells cells = cells_of(text);
  return width_of(cells, 0, cells.size());
}

std::string join(const std::vector<LineField>& fields) {
  std::string line;
  for (const LineField& field : fields) {
    if (!line.empty()) line.append(static_cast<std::size_t>(field.gap), ' ');
    line += field.text;
  }
  return line;
}

std::string fit(std::vector<LineField> fields, int columns) {
  while (fields.size() > 1 && display_width(join(fields)) > columns)
    fields.erase(std::ranges::min_element(fields, {}, &LineField::importance));
  std::string line = join(fields);
  if (display_width(line) <= columns) return line;
  const Cells cells = cells_of(line);
  return text_of(cells, 0, end_of_piece(cells, 0, cells.size(), columns));
}

std::string fold(std::string_view line, int columns) {
  const Cells cells = cells_of(line);
  if (width_of(cells, 0, cells.size()) <= columns) return std::string(line);
  const std::size_t indent = hanging_indent(cells, columns);
  std::string lines;
  for (std::size_t begin = 0; begin < cells.size();) {
    const bool first = begin == 0;
    if (!first) lines += "\n" + std::string(indent, ' ');
    const std::size_t end = end_of_line(cells, begin, first ? columns : columns - static_cast<int>(indent));
    lines += text_of(cells, begin, end);
    begin = skip_spaces(cells, end);
  }
  return lines;
}

std::string fold_lines(std::string_view text, int columns) {
  std::istringstream in{std::string(text)};
  std::string lines;
  for (std::string line; std::getline(in, line);) lines += fold(line, columns) + (in.eof() ? "" : "\n");
  return lines;
}

namespace {

/// The words of a text; a number and the word after it are one.
std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  bool is_number = false;
  for (std::string word; in >> word;) {
    if (is_number) {
      words.back() += " " + word;
    } else {
      words.push_back(word);
    }
    is_number = word.find_first_not_of("0123456789") == word.npos;
  }
  return words;
}

}  // namespace

std::string fill(std::string_view paragraph, int columns, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string text, line;
  for (const std::string& word : words_of(paragraph)) {
    if (!line.empty() && display_width(line) + 1 + display_width(word) > columns - indent) {
      text += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return text + margin + line;
}

std::string align_columns(const TableRows& rows, const std::vector<std::size_t>& right, int indent) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(static_cast<std::size_t>(widths[i] - display_width(row[i])), ' ');
      const bool is_right = std::ranges::find(right, i) != right.end();
      line += is_right ? gap + row[i] + "  " : row[i] + gap + "  ";
    }
    text += without_spaces_behind(std::move(line)) + "\n";
  }
  return text;
}

int widest_line(std::string_view text) {
  std::istringstream in{std::string(text)};
  int widest = 0;
  for (std::string line; std::getline(in, line);) widest = std::max(widest, display_width(line));
  return widest;
}

std::string without_spaces_behind(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string clip_middle(std::string_view text, int columns) {
  constexpr int kDots = 3;
  if (display_width(text) <= columns) return std::string(text);
  const Cells cells = cells_of(text);
  const int room = std::max(columns - kDots, 0);
  std::size_t front = 0, back = cells.size();
  int width = 0;
  while (front < back && width + cells[front].width <= room / 2) width += cells[front++].width;
  while (back > front && width + cells[back - 1].width <= room) width += cells[--back].width;
  return text_of(cells, 0, front) + "..." + text_of(cells, back, cells.size());
}

std::string bar(double fraction, int width, bool unicode) {
  const double share = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const auto full = static_cast<int>(std::lround(share * width));
  std::string text;
  for (int i = 0; i < width; ++i) text += i < full ? (unicode ? "━" : "#") : (unicode ? "╌" : ".");
  return text;
}

std::string format_duration(double seconds) {
  const auto whole = std::llround(seconds);
  const auto hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string format_seconds(double seconds) {
  const int decimals = seconds < 0.0995 ? 3 : seconds < 0.995 ? 2 : 1;
  return fmt::format("{:.{}f} s", seconds, decimals);
}

std::string format_time(double seconds) {
  return seconds < 60 ? format_seconds(seconds) : format_duration(seconds);
}

std::string format_loss(double loss) {
  return std::abs(loss) < 1e6 ? fmt::format("{:.4f}", loss) : fmt::format("{:.4e}", loss);
}

std::string percent_text(double share) {
  double percent = 100 * share;
  if (share < 1) percent = std::min(percent, 99.99);
  if (share > 0) percent = std::max(percent, 0.01);
  return fmt::format("{:.2f}", percent);
}

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (auto at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", first == 0 ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text;
}

std::string list_of(std::string_view thing, const std::vector<int>& numbers) {
  return plural(numbers.size(), thing) + " " + ranges_text(numbers);
}

}  // namespace lockstep
