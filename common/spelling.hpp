// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The words of enumerations with a few values, as job files and outputs have them; nowhere else are they compared.
/// And tables whose entries have names.
#pragma once

#include "common/error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace lockstep {

template <typename Value, std::size_t kCount = 2>
using Spellings = std::array<std::pair<std::string_view, Value>, kCount>;
/// Specialised beside each enumeration.
template <typename Value>
inline constexpr Spellings<Value> kSpellings{};

/// "world"
template <typename Value>
constexpr std::string_view spelt(Value value) {
  for (const auto& [text, of_text] : kSpellings<Value>)
    if (of_text == value) return text;
  return "";
}

/// The entry of a table whose member has this value; there is one.
const auto& entry_of(const auto& table, const auto& value, auto member) {
  const auto found = std::ranges::find(table, value, member);
  LOCKSTEP_CHECK(found != std::ranges::end(table));
  return *found;
}

}  // namespace lockstep
