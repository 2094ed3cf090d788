// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Knows whether the other ranks are alive while this one waits for them.
#pragma once

#include "comm/activity/arrival.hpp"

#include <vector>

namespace lockstep {

/// Asked by Communicator::wait, from any thread; all answers cost a load of an atomic.
class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// A rank is lost for good: all waits end.
  virtual bool is_over() const noexcept = 0;
  /// There is a reason to wait on, though the time is up: a debugger holds a rank.
  virtual bool has_patience() const noexcept = 0;
  /// For faults on purpose: from now on it neither hears nor says anything.
  virtual void drop_network() noexcept = 0;
  /// Tells rank 0 now what it would hear in half a second.
  virtual void report_now() noexcept = 0;
  /// How the ranks compare, on rank 0; empty: not known there, or not yet.
  virtual std::vector<RankScore> scores() const = 0;
};

}  // namespace lockstep
