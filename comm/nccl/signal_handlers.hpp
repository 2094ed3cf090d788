// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Keeps our signal handlers where a library installs its own.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace lockstep {

/// At its end the handlers of SIGUSR1 and SIGUSR2 are again what they were at its beginning. Schedulers
/// announce the end of a job with these, and some NCCL releases take SIGUSR1 for themselves.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~SignalHandlersKept() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;

 private:
  static constexpr std::array<int, 2> kSignals{SIGUSR1, SIGUSR2};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace lockstep
