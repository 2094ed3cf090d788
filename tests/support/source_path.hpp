// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where the sources are, for tests that read files of theirs.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace lockstep::test {

/// A path from the root of the sources, such as "tests/golden/kernels.safetensors", as one that can be opened.
inline std::string source_path(const std::string& path) {
  const char* root = std::getenv("LOCKSTEP_SOURCE_DIR");
  if (root == nullptr)
    throw std::runtime_error("set LOCKSTEP_SOURCE_DIR to the root of the sources, as ctest does");
  return std::string(root) + "/" + path;
}

}  // namespace lockstep::test
