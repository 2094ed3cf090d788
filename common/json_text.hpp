// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// JSON to text and back. nlohmann-json's parser and writer compile longer than most of our sources: here
/// they are compiled once.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

/// A missing value is null in JSON.
template <typename Value>
struct nlohmann::adl_serializer<std::optional<Value>> {
  template <typename Json>
  static void to_json(Json& json, const std::optional<Value>& value) {
    json = value ? Json(*value) : Json(nullptr);
  }
  template <typename Json>
  static void from_json(const Json& json, std::optional<Value>& value) {
    value = json.is_null() ? std::nullopt : std::optional(json.template get<Value>());
  }
};

namespace lockstep {

/// @throws nlohmann::json::parse_error  it is no JSON
nlohmann::json parse_json(std::string_view text);

/// A discarded value (is_discarded()) where it is no JSON.
nlohmann::json parse_json_or_discard(std::string_view text);

/// In UTF-8; bytes that are none become U+FFFD. @param indent  spaces for each level; -1: all on one line
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

/// JSON as text on one line, in ASCII: other characters are escaped.
std::string json_text_in_ascii(const nlohmann::ordered_json& json);

/// A list with what `make` makes of each value.
template <typename Json = nlohmann::ordered_json>
Json json_list(const auto& values, const auto& make) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(make(value));
  return list;
}

}  // namespace lockstep
