// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The one source that has nlohmann-json's parser and writer in it.
#include "common/json_text.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

template <typename Json>
std::string dumped(const Json& json, int indent, bool in_ascii) {
  return json.dump(indent, ' ', in_ascii, Json::error_handler_t::replace);
}

nlohmann::json parsed(std::string_view text, bool may_throw) {
  return nlohmann::json::parse(text.data(), text.data() + text.size(), nullptr, may_throw);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  return parsed(text, true);
}

nlohmann::json parse_json_or_discard(std::string_view text) {
  return parsed(text, false);
}

std::string json_text(const nlohmann::json& json, int indent) {
  return dumped(json, indent, false);
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return dumped(json, indent, false);
}

std::string json_text_in_ascii(const nlohmann::ordered_json& json) {
  return dumped(json, -1, true);
}

}  // namespace lockstep
