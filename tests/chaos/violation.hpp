// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a chaos test throws when the program broke a promise.
#pragma once

#include <stdexcept>

namespace lockstep::chaos {

/// Names the promise and what was seen instead.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lockstep::chaos
