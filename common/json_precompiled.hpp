// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// nlohmann-json for precompiled headers: without its suffix _json, which is not used here. It parses the text
/// before it, so that every source that reads the header, and be it precompiled, would compile the parser: a third of
/// a second of each.
#pragma once

#include <cstddef>

// The suffix is declared, and its body given to a template that is never instantiated.
#define JSON_USE_GLOBAL_UDLS 0
// NOLINTNEXTLINE(bugprone-reserved-identifier): nlohmann's name
#define _json                                         \
  _json(const char* text, std::size_t size) = delete; \
  template <class>                                    \
  nlohmann::json json_of_suffix
#include <nlohmann/json.hpp>
#undef _json

using nlohmann::literals::json_literals::operator""_json_pointer;  // the header would declare it like this
