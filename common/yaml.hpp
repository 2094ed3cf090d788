// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// YAML as Lockstep reads it: the plain part of the language, with everything that surprises or harms
/// refused.
#pragma once

#include "common/error.hpp"
#include "common/printable.hpp"  // quoted_text, which goes with every message

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxYamlDepth = 32;
/// The most '[' and '{' in one text: bounds how far yaml-cpp looks ahead.
inline constexpr std::size_t kMaxYamlBrackets = 10'000;

/// Parses one YAML document. In the result all keys of maps are text and different from each other, nothing
/// is shared, and Tag() of a scalar is "?" if it was written plain and "!" if it was quoted. An empty text
/// gives a null node.
///
/// Time and stack are bounded for any input: linear in the text, and at most kMaxYamlDepth levels.
///
/// @param file  name of the text, for messages
/// @throws ConfigError `file:line:column: ...`. For a syntax error, more than kMaxYamlBytes, bytes that are
///         not printable UTF-8, anchors, aliases, tags, a second document, duplicate keys, keys that are not
///         text, too many levels
YAML::Node load_strict_yaml(const std::string& text, const std::string& file);

/// Reads a YAML file, at most kMaxYamlBytes of it, and parses it as load_strict_yaml does.
/// @throws MissingDataError  there is no such file
/// @throws IoError           it cannot be read
/// @throws ConfigError       see load_strict_yaml
std::string read_yaml_file(const std::string& path);

/// `file:line:column: message`, counted from 1 in bytes; only `file: message` where the mark is null.
ConfigError config_error(const std::string& file, const YAML::Mark& mark, const std::string& message);

/// " (did you mean 'x'?)" for the candidate that `key` most likely misspells, or "" if none is
/// near.
std::string did_you_mean(const std::string& key, std::span<const std::string_view> candidates);

/// A text of each row, such as its name, for did_you_mean() and messages. Texts are borrowed.
template <typename Name = std::identity>
std::vector<std::string_view> names_of(const auto& rows, const Name& name = {}) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.emplace_back(std::invoke(name, row));
  return names;
}

// Text of a YAML scalar to a number or truth value, whole and exact or not at all. Equal in every locale.

/// Decimal digits with an optional minus. No leading zeros (octal in some YAML readers), no 1e3, no 0x10, no
/// 1_000.
std::optional<std::int64_t> parse_int64(std::string_view text);
std::optional<std::uint64_t> parse_uint64(std::string_view text);

/// A finite decimal number such as 1, -0.5 or 1e-3.
std::optional<double> parse_double(std::string_view text);

/// true, yes, on; false, no, off.
std::optional<bool> parse_bool(std::string_view text);

/// "65536", "64KiB", "64 KiB", "1MiB", "1GiB" in bytes.
std::optional<std::uint64_t> parse_byte_count(std::string_view text);

/// Explanation of a refused number: ", which is 0 as fp32, whose smallest number is 1.4e-45". Another for a number
/// below 1 that is 1 as fp32. "" for others.
std::string fp32_hint(const std::string& text);

/// The shortest decimal number that parse_double reads as the same value.
std::string format_double(double value);

/// A YAML scalar that reads as this text: plain where that is safe for every YAML reader, otherwise quoted.
/// The text must be printable (find_unprintable) and hold no line breaks.
std::string format_yaml_text(std::string_view text);

}  // namespace lockstep
