// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Text of a YAML scalar to a number or truth value, whole and exact or not at all; the same in every locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

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

/// ", which is 0 as fp32, whose smallest number is 1.4e-45": what to say of a number that is refused for it. Likewise
/// of one below 1 that is 1 as fp32. "" for others.
std::string fp32_hint(const std::string& text);

/// The shortest decimal number that parse_double reads as the same value.
std::string format_double(double value);

/// A YAML scalar that reads as this text: plain where that is safe for every YAML reader, otherwise quoted.
/// The text must be printable (find_unprintable) and hold no line breaks.
std::string format_yaml_text(std::string_view text);

}  // namespace lockstep
