// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ends a fuzzer that has found something, and tells refusals from that.
#pragma once

#include "common/error.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace lockstep::fuzz {

[[noreturn]] inline void report(const char* what) {
  std::fputs(what, stderr);
  std::abort();
}

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// False where `read` refuses with the error that it promises. Other exceptions end the run.
template <typename Read>
bool accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const DataError&) {
    return false;
  }
}

/// Nothing where `read` refuses.
template <typename Read>
auto accepted(const Read& read) {
  std::optional<decltype(read())> result;
  accepts([&] { result = read(); });
  return result;
}

}  // namespace lockstep::fuzz
