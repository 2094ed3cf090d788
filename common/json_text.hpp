// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// JSON to text and back. nlohmann-json's parser and writer take longer to compile than most of our sources: here
/// they are compiled once.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace lockstep {

/// @throws nlohmann::json::parse_error  it is no JSON
nlohmann::json parse_json(std::string_view text);

/// A discarded value (is_discarded()) where it is no JSON.
nlohmann::json parse_json_or_discard(std::string_view text);

/// In UTF-8; bytes that are none become U+FFFD. @param indent  spaces for each level; -1: all on one line
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

/// The same on one line, in ASCII: other characters are escaped.
std::string json_text_in_ascii(const nlohmann::ordered_json& json);

}  // namespace lockstep
