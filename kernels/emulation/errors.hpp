// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Errors of the emulated runtime as CUDA reports them, and the place in a kernel that a message names.
#pragma once

#include "kernels/emulation/runtime_api.hpp"

#include <cstring>
#include <string>

namespace lockstep::emulation {

// How the functions of the runtime return.

/// Notes a failure for cudaGetLastError(); returns its argument.
cudaError_t finish(cudaError_t status);

// The place of a call in a source file: std::source_location, which clang 14 lacks.

struct CallSite {
  const char* file = "";
  int line = 0;

  /// The caller's, if this is a default argument or default member initialiser.
  static constexpr CallSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  friend bool operator==(const CallSite& a, const CallSite& b) {
    return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
  }
};

/// "loss.cu:87"
std::string to_string(const CallSite& call);

}  // namespace lockstep::emulation
