// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Texts of a fixed size, as they travel and lie in files: each ends with a zero.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace lockstep {

/// The longest start of `text` that ends with a word, and "..."; all of it if that fits into `most` bytes.
/// @returns how many bytes of `text` to take; fewer than it has: "..." belongs behind them
inline std::size_t bytes_that_fit(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text.size();
  std::size_t end = most < 3 ? 0 : most - 3;
  const std::size_t space = text.rfind(' ', end);
  if (space != text.npos && space >= end / 2) end = space;
  // Never in the middle of a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return end;
}

/// Overwrites all of `into`. What is too long ends with "...".
template <std::size_t Size>
void put_text(std::string_view text, std::array<char, Size>& into) {
  static_assert(Size > 4);
  into = {};
  const std::size_t taken = bytes_that_fit(text, Size - 1);
  text.substr(0, taken).copy(into.data(), taken);
  if (taken < text.size()) std::string_view("...").copy(into.data() + taken, 3);
}

/// Up to the zero, or all of it.
template <std::size_t Size>
std::string_view text_in(const std::array<char, Size>& text) {
  return {text.data(), static_cast<std::size_t>(std::find(text.begin(), text.end(), '\0') - text.begin())};
}

}  // namespace lockstep
