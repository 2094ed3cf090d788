// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How much a test tries.
#pragma once

namespace lockstep::test {

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
