// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Red zones are filled with a pattern, and closed to AddressSanitizer where it runs.
#include "kernels/emulation/redzone.hpp"

#include "kernels/emulation/sanitizer.hpp"

#include <cstring>

namespace lockstep::emulation {
namespace {

constexpr unsigned char kFill = 0xA5;

}  // namespace

void close_redzone(unsigned char* begin, std::size_t bytes) {
  unpoison(begin, bytes);
  std::memset(begin, kFill, bytes);
  poison(begin, bytes);
}

__attribute__((no_sanitize("address"))) const unsigned char* find_damage(const unsigned char* begin,
                                                                         std::size_t bytes) {
  for (const unsigned char* at = begin; at != begin + bytes; ++at)
    if (*at != kFill) return at;
  return nullptr;
}

}  // namespace lockstep::emulation
