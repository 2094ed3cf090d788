// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/runtime/error.hpp"

#include <fmt/format.h>

namespace lockstep {

void throw_check_failure(const char* condition, const char* file, int line) {
  throw InternalError(
      fmt::format("internal error at {}:{}: '{}' does not hold; please report this", file, line, condition));
}

}  // namespace lockstep
