// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A strict UTF-8 decoder, and what it makes of code points that have no place in a text.
#include "common/printable.hpp"

#include "common/env.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

char32_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

bool is_control(char32_t value) {
  return value < 0x20 || (value >= 0x7F && value < 0xA0);
}

const char* control_cause(std::string_view text, std::size_t at, char32_t value) {
  if (value == '\t' || value == '\n') return nullptr;
  if (value == '\r') {
    const bool ends_line = at + 1 < text.size() && text[at + 1] == '\n';
    return ends_line ? nullptr : "a carriage return without a line feed";
  }
  if (value == 0) return "a NUL byte";
  if (is_control(value)) return "a control character";
  if (value == 0xFFFE || value == 0xFFFF) return "a code point that is not a character";
  return nullptr;
}

/// Marks and overrides of writing direction, and invisible characters: what is shown is then not what
/// is there. Joiners (U+200C, U+200D) stay: some languages are not written without them.
bool deceives(char32_t value) {
  return value == 0x061C || value == 0x180E || value == 0x200B || value == 0x200E || value == 0x200F ||
         (value >= 0x2028 && value <= 0x202E) || (value >= 0x2060 && value <= 0x206F) || value == 0xFEFF ||
         (value >= 0xFFF9 && value <= 0xFFFB) || (value >= 0xE0000 && value <= 0xE0FFF);
}

/// @param kept  control characters that stay
std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.bytes == 0) {
      result += fmt::format("\\x{:02x}", std::uint32_t{byte_at(text, at++)});
      continue;
    }
    const bool stays = point.bytes == 1 && kept.find(text[at]) != kept.npos;
    if (is_control(point.value) && !stays) {
      result += fmt::format("\\x{:02x}", std::uint32_t{point.value});
    } else if (deceives(point.value)) {
      result += fmt::format("\\u{:04x}", std::uint32_t{point.value});
    } else {
      result += text.substr(at, point.bytes);
    }
    at += point.bytes;
  }
  return result;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, std::size_t at) {
  const char32_t lead = byte_at(text, at);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + bytes > text.size()) return {0, 0};
  char32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const char32_t next = byte_at(text, at + i);
    if ((next & 0xC0U) != 0x80) return {0, 0};
    value = (value << 6) | (next & 0x3FU);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {0, 0};
  return {value, bytes};
}

std::size_t begin_of_character(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && (byte_at(text, at) & 0xC0U) == 0x80) --at;
  return at;
}

std::string printable(std::string_view text) {
  return escaped(text, "\n\t");
}

std::string printable_line(std::string_view text) {
  return escaped(text, "");
}

std::string quoted_text(std::string_view text) {
  constexpr std::size_t kShownBytes = 60;
  const std::size_t end = begin_of_character(text, std::min(text.size(), kShownBytes));
  return "'" + printable_line(text.substr(0, end)) + (end < text.size() ? "...'" : "'");
}

std::string shell_word(std::string word) {
  constexpr const char* kPlain = "_@%+=:,./-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  for (std::size_t at = 0; (at = word.find('\'', at)) != word.npos; at += 4) word.replace(at, 1, "'\\''");
  return "'" + word + "'";
}

std::optional<UnprintableByte> find_unprintable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.bytes == 0) return UnprintableByte{at, "bytes that are not UTF-8"};
    if (const char* cause = control_cause(text, at, point.value)) return UnprintableByte{at, cause};
    at += point.bytes;
  }
  return std::nullopt;
}

std::string without_formula(std::string text) {
  if (text.find_first_of("=+-@") != 0) return text;
  const bool has_sign = text.find_first_of("+-") == 0;
  return has_sign && parse_whole<double>("-" + text.substr(1)) ? text : "'" + text;
}

std::string in_small_letters(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace lockstep
