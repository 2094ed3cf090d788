// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The bytes around a piece of memory that no kernel may touch. In every build a write to them shows when
/// they are looked at; AddressSanitizer also reports reads, and at once.
#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// Fills the bytes and poisons them.
void close_redzone(unsigned char* begin, std::size_t bytes);
/// The first byte that was written to, or null.
const unsigned char* find_damage(const unsigned char* begin, std::size_t bytes);

}  // namespace lockstep::emulation
