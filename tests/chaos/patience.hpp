// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How long a test waits before it calls something a hang.
#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep::chaos {

/// Counts time in which this process was awake and asking: one that was stopped and continued, or starved,
/// has lost no patience meanwhile.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Patience(Clock::duration limit) : left_(limit) {}

  /// To be asked again and again while waiting.
  bool is_exhausted() {
    constexpr std::chrono::milliseconds kMostAtOnce{100};
    const auto now = Clock::now();
    left_ -= std::min<Clock::duration>(now - last_, kMostAtOnce);
    last_ = now;
    return left_ < Clock::duration::zero();
  }

 private:
  Clock::duration left_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace lockstep::chaos
