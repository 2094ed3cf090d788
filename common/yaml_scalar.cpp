// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scalars of YAML as numbers, and the known word that an unknown one was meant to be.
#include "common/env.hpp"
#include "common/printable.hpp"
#include "common/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace lockstep {

// Scalars by std::from_chars and std::to_chars, which know no locale.

namespace {

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return parse_whole<Integer>(text);
}

/// Words that YAML 1.1 readers (PyYAML among them) do not read as text.
bool is_yaml_keyword(std::string_view text) {
  constexpr std::array<std::string_view, 10> kKeywords = {"null", "true", "false", "yes", "no",
                                                          "on",   "off",  "y",     "n",   "~"};
  return std::ranges::find(kKeywords, in_small_letters(std::string(text))) != kKeywords.end();
}

bool is_safe_plain(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '.' || c == '-';
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
  using Unit = std::pair<std::string_view, std::uint64_t>;
  constexpr std::array<Unit, 4> kUnits = {
      {{"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"", 1}}};
  const auto& [name, bytes] =
      *std::ranges::find_if(kUnits, [&](const Unit& unit) { return text.ends_with(unit.first); });
  text.remove_suffix(name.size());
  if (!name.empty() && text.ends_with(' ')) text.remove_suffix(1);
  const std::optional<std::uint64_t> count = parse_uint64(text);
  if (!count || *count > std::numeric_limits<std::uint64_t>::max() / bytes) return std::nullopt;
  return *count * bytes;
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

// Finds the word that a misspelt one was meant to be.

namespace {

constexpr std::size_t kLongestWord = 64;  // no key of ours is longer
constexpr std::size_t kNever = kLongestWord * 2;

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours, each at cost 1.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  if (a.size() > kLongestWord || b.size() > kLongestWord) return kNever;
  using Row = std::array<std::size_t, kLongestWord + 1>;
  Row before_last{}, last{}, row{};
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

std::string folded(std::string_view word) {
  std::string result = in_small_letters(std::string(word.substr(0, kLongestWord + 1)));
  std::ranges::replace(result, '-', '_');
  return result;
}

/// Cost of the guess that `key` means `candidate`; kNever if they differ too much.
std::size_t guess_cost(const std::string& key, const std::string& candidate) {
  const std::size_t distance = edit_distance(key, candidate);
  const std::size_t tolerated = std::max<std::size_t>(1, std::min(key.size(), candidate.size()) / 3);
  if (distance <= tolerated) return distance;
  const bool part = key.size() >= 4 && candidate.size() >= 4 && key.size() <= kLongestWord &&
                    (candidate.find(key) != candidate.npos || key.find(candidate) != key.npos);
  return part ? tolerated + distance : kNever;
}

}  // namespace

std::string did_you_mean(const std::string& key, std::span<const std::string_view> candidates) {
  const auto cost = [word = folded(key)](std::string_view known) { return guess_cost(word, folded(known)); };
  const auto best = std::ranges::min_element(candidates, {}, cost);
  const bool is_near = best != candidates.end() && cost(*best) < kNever;
  return is_near ? fmt::format(" (did you mean '{}'?)", *best) : "";
}

}  // namespace lockstep
