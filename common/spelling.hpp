// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The words of enumerations with a few values, as job files and outputs have them; nowhere else are they compared.
#pragma once

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

}  // namespace lockstep
