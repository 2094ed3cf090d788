// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A check of the burn: the interface, and what every check is given.
#pragma once

#include "comm/communicator.hpp"
#include "common/machine.hpp"
#include "trainer/burn/burn.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/run/stop_signal.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace lockstep::burn {

/// Context of a check on one rank. All references are borrowed.
struct BurnRank {
  Communicator& comm;
  const BurnOptions& options;
  const DeviceChoice& device;
  int threads;
  std::function<void(std::string_view check)> tick;  ///< draws the progress; cheap

  bool commits(std::string_view kind) const {
    return options.fault.kind == kind && options.fault.rank == comm.rank();
  }
};

/// When a check's part of a round ends. A check does at least its least, however late it is.
class CheckTime {
 public:
  explicit CheckTime(double seconds)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  /// Also once a signal asked for the end.
  bool is_over() const { return stop_requested() || Clock::now() >= end_; }
  double seconds_left() const {
    return is_over() ? 0 : std::chrono::duration<double>(end_ - Clock::now()).count();
  }

 private:
  Clock::time_point end_;
};

/// Keeps the quickest of several. @param quickest  0: there is none yet
inline void keep_quickest(double& quickest, double seconds) {
  if (quickest == 0 || seconds < quickest) quickest = seconds;
}

/// One rank's part of a check. What it finds it adds to the result; a kind of finding once, the first of it.
class BurnCheck {
 public:
  virtual ~BurnCheck() = default;
  /// One round of work; collective where the check is about several ranks.
  virtual void work(const CheckTime& slice) = 0;
  /// Writes what was exercised, measured and found so far.
  virtual void report(RankResult& result) const = 0;
};

std::unique_ptr<BurnCheck> make_jobs(const BurnRank& rank);
/// Null where there is one rank. Collective.
std::unique_ptr<BurnCheck> make_links(const BurnRank& rank);

}  // namespace lockstep::burn
