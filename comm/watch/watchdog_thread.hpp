// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The thread of a watchdog: beats, looks at the peers, lets a detector decide, and does what that says.
#pragma once

#include "comm/communicator.hpp"
#include "comm/watch/failure_detector.hpp"
#include "comm/watch/heartbeat.hpp"
#include "comm/watch/rendezvous.hpp"
#include "comm/watch/shutdown.hpp"
#include "comm/watch/watchdog.hpp"

#include <asio.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace lockstep::watchdog {

/// Runs from construction to destruction, which says goodbye to the others. Public members are for other threads.
class WatchdogThread final : public Watchdog {
 public:
  /// Borrows comm.
  WatchdogThread(Communicator& comm, Rendezvous roll);
  ~WatchdogThread() override;

  bool is_over() const noexcept override { return shutdown_.is_over(); }
  bool has_patience() const noexcept override { return patience_.load(std::memory_order_relaxed); }
  void drop_network() noexcept override;
  bool accounts_for_loss() override;
  void leave_alone(int exit_code) override;

 private:
  void run();
  void schedule();
  Beat make_beat();
  void look();
  void look_soon();
  void look_again_soon();
  void look_at_processes(std::int64_t now);
  void look_at_deaths(std::int64_t now);
  void leave_because_of(const Verdict& verdict);
  void finish(const Message& last);
  void finish_when_sent(int tries);

  Communicator& comm_;
  int rank_;
  Limits limits_;
  std::chrono::milliseconds interval_;
  Peers peers_;
  FailureDetector detector_;
  std::unique_ptr<asio::io_context> context_;
  asio::steady_timer timer_, soon_;
  Heartbeat heartbeat_;
  Shutdown shutdown_;
  std::int64_t last_look_ns_ = 0, overdue_ns_ = 0;
  int witnessed_ = -1;
  char witnessed_state_ = '?';
  bool traced_ = false;
  bool gone_ = false;  ///< said goodbye: nothing is looked at any more
  std::atomic<bool> patience_{false};
  std::thread thread_;
};

/// A look that is a second late: this process was away. The peers are as if they had been heard, and had moved, just now.
void forgive_absence(std::int64_t last_look_ns, std::int64_t now_ns, std::int64_t interval_ns, Peers& peers);

// Facts from /proc about processes that have gone quiet.

/// State from /proc/PID/stat: R, S, D, T (stopped), t (held by a debugger), Z (ended); '?': it says nothing.
char state_of_process(int pid);

/// True if its process runs the program of this one. So it is no stranger of that number in another container.
bool runs_this_program(int pid);

/// True if it ends, was killed, or is gone: the kernel says so before its connections close.
bool is_ending(int pid);
/// True if its text in /proc/PID/stat, from its state on, says so, or there is none.
bool shows_end(const std::string& stat);

/// True if a debugger is attached to this process.
bool is_traced();

}  // namespace lockstep::watchdog
