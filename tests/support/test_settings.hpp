// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Settings of a test from outside: the folder of the sources, and its effort.
#pragma once

#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// A path from the root of the sources, such as "tests/golden/layers.safetensors", as one that can be opened.
inline std::string source_path(const std::string& path) {
  const char* root = std::getenv("LOCKSTEP_SOURCE_DIR");
  if (root == nullptr)
    throw std::runtime_error("set LOCKSTEP_SOURCE_DIR to the root of the sources, as ctest does");
  return std::string(root) + "/" + path;
}

// How much it tries.

/// Everything; but less where sanitizers make each try take five to eight times as long. What they look for shows in
/// the first tries, and what takes all of them to show, the release build finds.
template <typename T>
constexpr T effort([[maybe_unused]] T everything, [[maybe_unused]] T under_sanitizers) {
#ifdef LOCKSTEP_SANITIZED
  return under_sanitizers;
#else
  return everything;
#endif
}

}  // namespace lockstep::test
