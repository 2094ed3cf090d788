// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scalars by std::from_chars and std::to_chars, which know no locale.
#include "common/yaml/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return parse_whole<Integer>(text);
}

/// Words that YAML 1.1 readers (PyYAML among them) do not take for text.
bool is_yaml_keyword(std::string_view text) {
  constexpr std::array<std::string_view, 10> kKeywords = {"null", "true", "false", "yes", "no",
                                                          "on",   "off",  "y",     "n",   "~"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(kKeywords.begin(), kKeywords.end(), lower) != kKeywords.end();
}

bool is_safe_plain(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [&](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '/' || c == '.' || c == '-';
  };
  if (text.empty() || is_yaml_keyword(text)) return false;
  const bool starts_as_text = is_letter(text.front()) || text.front() == '/';
  return starts_as_text && std::all_of(text.begin(), text.end(), is_plain);
}

}  // namespace

std::optional<std::int64_t> parse_int64(std::string_view text) {
  return parse_integer<std::int64_t>(text);
}
std::optional<std::uint64_t> parse_uint64(std::string_view text) {
  return parse_integer<std::uint64_t>(text);
}

std::optional<double> parse_double(std::string_view text) {
  const std::optional<double> value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "no" || text == "off") return false;
  return std::nullopt;
}

std::optional<std::uint64_t> parse_byte_count(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"", 1}}};
  const auto unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return text.ends_with(u.name); });
  text.remove_suffix(unit->name.size());
  if (!unit->name.empty() && text.ends_with(' ')) text.remove_suffix(1);
  const std::optional<std::uint64_t> count = parse_uint64(text);
  if (!count || *count > std::numeric_limits<std::uint64_t>::max() / unit->bytes) return std::nullopt;
  return *count * unit->bytes;
}

std::string fp32_hint(const std::string& text) {
  const std::optional<double> number = parse_double(text);
  if (!number) return "";
  const auto used = static_cast<float>(*number);
  if (used == 0 && *number != 0) return ", which is 0 as fp32, whose smallest number is 1.4e-45";
  if (used == 1 && *number < 1) return ", which is 1 as fp32, whose largest number below 1 is 0.99999994";
  return "";
}

std::string format_double(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

std::string format_yaml_text(std::string_view text) {
  if (is_safe_plain(text)) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace lockstep
