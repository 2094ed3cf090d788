// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Large inputs from small ones: what costs stack or memory is often one thing many times over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::fuzz {

inline constexpr std::size_t kLargest = std::size_t{128} << 10;

/// Expands runs: byte 2, which no text has, and two more, a and b, repeat bytes. They stand for the a + 1
/// bytes before them, 64 * b times over; the whole never gets longer than kLargest by that.
inline std::string expand(const std::uint8_t* data, std::size_t size) {
  std::string text;
  for (std::size_t at = 0; at < size; ++at) {
    if (data[at] != 2 || at + 2 >= size) {
      text += static_cast<char>(data[at]);
      continue;
    }
    const std::string piece =
        text.substr(text.size() - std::min<std::size_t>(text.size(), data[at + 1] + 1U));
    for (unsigned i = 0; i < 64U * data[at + 2] && text.size() + piece.size() <= kLargest; ++i) text += piece;
    at += 2;
  }
  return text;
}

}  // namespace lockstep::fuzz
