// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Text from outside, and what of it may be shown: printable Unicode in well-formed UTF-8. File names,
/// manifests, lock files, arguments, the environment and host names may hold anything; a terminal obeys some
/// of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct UnprintableByte {
  std::size_t offset;
  const char* cause;  ///< "a NUL byte", "bytes that are not UTF-8", ...
};

/// The first place where `text` is not printable UTF-8. Tabs, line feeds and CR LF are allowed, other control
/// characters are not: yaml-cpp takes byte 4 for the end of the file and would silently drop what follows.
std::optional<UnprintableByte> find_unprintable(std::string_view text);

/// `text` as it may be shown on a terminal: control characters (escape sequences begin with one), characters
/// that reorder or hide their neighbours, and bytes that are not UTF-8 become \x1b, \u202e. Line feeds and
/// tabs stay.
std::string printable(std::string_view text);

/// The same for a message of one line: line feeds and tabs are escaped, too.
std::string printable_line(std::string_view text);

/// The text in single quotes, fit for a one-line message: as printable_line, clipped if it is long.
std::string quoted_text(std::string_view text);

/// For a cell of a table: a text that a spreadsheet would compute (it begins with = + - @, and is no number) gets an
/// apostrophe in front, which marks text there.
std::string without_formula(std::string text);

/// ASCII letters become small ones.
std::string in_small_letters(std::string text);

/// The text without spaces, tabs and carriage returns before and after it.
std::string_view trimmed(std::string_view text);

}  // namespace lockstep
