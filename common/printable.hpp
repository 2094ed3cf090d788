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

/// A character in UTF-8.
struct CodePoint {
  char32_t value;
  std::size_t bytes;  ///< 0: not UTF-8
};

/// The character that begins at `at`, of which strict UTF-8 is asked.
CodePoint decode_utf8(std::string_view text, std::size_t at);

/// Moves a place within a character of UTF-8 to its beginning. @param at  may be the end of the text
std::size_t begin_of_character(std::string_view text, std::size_t at);

/// The first place where `text` is not printable UTF-8. Tabs, line feeds and CR LF are allowed, other control
/// characters are not: yaml-cpp reads byte 4 as the end of the file and would silently drop the rest.
std::optional<UnprintableByte> find_unprintable(std::string_view text);

/// Makes `text` safe for a terminal. Control characters (escape sequences begin with one), characters
/// that reorder or hide their neighbours, and bytes that are not UTF-8 become \x1b, \u202e. Line feeds and
/// tabs stay.
std::string printable(std::string_view text);

/// printable() for a message of one line: line feeds and tabs are escaped, too.
std::string printable_line(std::string_view text);

/// The text in single quotes, fit for a one-line message: as printable_line, clipped if it is long.
std::string quoted_text(std::string_view text);

/// The word as a shell reads it back: in single quotes if it has other characters than plain ones.
std::string shell_word(std::string word);

/// Makes `text` safe for a cell of a table. A text that a spreadsheet would compute (it begins with = + - @, and is no
/// number) gets an apostrophe before it, which marks text there.
std::string without_formula(std::string text);

/// ASCII letters become small ones.
std::string in_small_letters(std::string text);

/// The text without spaces, of any kind that C calls so, before and after it.
std::string_view trimmed(std::string_view text);

}  // namespace lockstep
