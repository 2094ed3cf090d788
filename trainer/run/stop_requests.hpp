// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which of several requests to stop are one, and which of them has lost its patience.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

/// Counts requests to stop. Launchers repeat themselves: GNU timeout signals its child and then the child's
/// group, a Slurm job's ranks may hear from Slurm and from its script. So whatever arrives within kTogether
/// of a request is that request. A later one only leaves at once when kGrace has passed since the first, or
/// when it is the third.
///
/// Lock-free, so that a signal handler may use it, on several threads at once.
class StopRequests {
 public:
  static constexpr std::int64_t kTogetherNs = 1'000'000'000;
  static constexpr std::int64_t kGraceNs = 5'000'000'000;
  static constexpr int kLeavingAt = 3;

  enum class Verdict {
    kStop,      ///< the first request
    kSame,      ///< one that is already counted
    kPatience,  ///< another one, too early to count as more than the first
    kLeave,     ///< leave now, saved or not
  };

  /// @param now  nanoseconds of a monotonic clock, not 0
  Verdict add(std::int64_t now) noexcept {
    std::int64_t none = 0;
    if (first_.compare_exchange_strong(none, now)) return Verdict::kStop;
    const std::int64_t first = first_.load();
    std::int64_t last = last_.load();
    if (now - (last == 0 ? first : last) < kTogetherNs) return Verdict::kSame;
    if (!last_.compare_exchange_strong(last, now)) return Verdict::kSame;  // another thread has counted it
    const bool leave = ++repeats_ + 1 >= kLeavingAt || now - first >= kGraceNs;
    return leave ? Verdict::kLeave : Verdict::kPatience;
  }

 private:
  std::atomic<std::int64_t> first_{0}, last_{0};  ///< 0: none; last_: of the repeats that were counted
  std::atomic<int> repeats_{0};
  static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
};

}  // namespace lockstep
