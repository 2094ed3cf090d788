// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How a rank leaves when another is lost: one rank says why, and all exit.
#pragma once

#include "comm/communicator.hpp"
#include "comm/watch/failure_detector.hpp"
#include "comm/watch/heartbeat.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::watchdog {

/// From the verdict to the end. On the watchdog's thread, but for is_over() and wait_until_settled().
class Shutdown {
 public:
  /// Borrows all of them.
  Shutdown(Communicator& comm, const FailureDetector& detector, Heartbeat& heartbeat, Peers& peers)
      : comm_(comm), detector_(detector), heartbeat_(heartbeat), peers_(peers) {}

  /// Another rank has spoken: this one leaves without a word.
  void follow();
  /// A rank is lost. Tells the others, and speaks at once if this rank is the speaker.
  void begin(const Verdict& verdict);
  /// The speaker speaks; the others wait for that, and speak themselves if it does not come. To be called again
  /// and again. Ends the process, with exit code 71, if the main thread has not done so in time.
  /// @param ready_ns  since when the main thread has nothing to do any more but to leave; 0: it has
  void go_on(std::int64_t now_ns, std::int64_t ready_ns);

  /// True once it has begun: all waits end now.
  bool is_over() const { return over_.load(std::memory_order_relaxed); }
  /// The verdict has been spoken, by whomever, or there is none to wait for.
  void settle();
  /// False: not in this time.
  bool wait_until_settled(std::chrono::nanoseconds limit);

  /// How long the main thread may take to leave in good order, with a save that is under way.
  static constexpr std::int64_t kLeaveWithinNs = 5'000'000'000;

 private:
  void speak(std::int64_t now_ns);
  bool write_down(const std::vector<std::string>& lines);
  Leaving farewell(bool spoken) const;

  Communicator& comm_;
  const FailureDetector& detector_;
  Heartbeat& heartbeat_;
  Peers& peers_;
  std::optional<Verdict> verdict_;
  std::int64_t over_ns_ = 0;
  std::int64_t settled_ns_ = 0;

  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool settled_ = false;  ///< under mutex_
};

}  // namespace lockstep::watchdog
