// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WatchdogThread: its timer, what it looks at each time, and what follows from a verdict.
#include "comm/watch/watchdog_thread.hpp"

#include "common/machine.hpp"
#include "common/output.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep::watchdog {

namespace {

using std::chrono::milliseconds;

/// An error of MPI may come before the death of its cause is seen.
constexpr std::int64_t kLookAroundNs = 500'000'000;
/// A look that comes so late: this process was stopped, or the machine slept, and heard no rank meanwhile.
constexpr std::int64_t kAwayNs = 1'000'000'000;
constexpr milliseconds kSoon{10};

/// Signals are the main thread's: while it lives, threads are started that get none.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

WatchdogThread::WatchdogThread(Communicator& comm, Rendezvous roll)
    : comm_(comm),
      rank_(comm.rank()),
      limits_(Limits::for_timeout(comm.timeout().count())),
      interval_(limits_.beat_interval()),
      peers_(std::move(roll.peers)),
      detector_(rank_, limits_),
      context_(std::move(roll.context)),
      timer_(*context_),
      soon_(*context_),
      heartbeat_(*context_, std::move(roll.acceptor), rank_, roll.token, peers_,
                 {.make_beat = [this] { return make_beat(); }, .changed = [this] { look_soon(); }}),
      shutdown_(comm, detector_, heartbeat_, peers_) {
  {
    const WithoutSignals blocked;
    thread_ = start_thread([this] { run(); });
  }
  comm_.be_watched(this);
}

WatchdogThread::~WatchdogThread() {
  comm_.be_watched(nullptr);
  asio::post(*context_, [this] { finish(Goodbye{}); });
  thread_.join();
}

void WatchdogThread::drop_network() noexcept {
  asio::post(*context_, [this] { heartbeat_.drop_network([](int) { return true; }); });
}

bool WatchdogThread::accounts_for_loss() {
  asio::post(*context_, [this] {
    if (overdue_ns_ == 0) overdue_ns_ = clock_ns();
    look_soon();
  });
  return shutdown_.wait_until_settled(std::chrono::nanoseconds(2 * Shutdown::kLeaveWithinNs));
}

void WatchdogThread::leave_alone(int exit_code) {
  asio::post(*context_, [this, exit_code] { finish(Leaving{exit_code, -1, true}); });
  shutdown_.wait_until_settled(std::chrono::seconds(1));
}

void WatchdogThread::run() {
  pthread_setname_np(pthread_self(), "watchdog");  // for ps -L and tests/bench/many_ranks
  last_look_ns_ = clock_ns();
  const std::string& host = at(peers_, rank_).who.host;
  for (Peer& peer : peers_)
    peer.in_proc = peer.who.rank != rank_ && peer.who.host == host && runs_this_program(peer.who.pid);
  heartbeat_.start();
  schedule();
  context_->run();
}

void WatchdogThread::schedule() {
  timer_.expires_after(interval_);
  timer_.async_wait([this](const asio::error_code& stopped) {
    if (stopped || gone_) return;
    heartbeat_.beat();
    look();
    schedule();
  });
}

/// Once now, and again when what has just begun may have settled.
void WatchdogThread::look_soon() {
  if (gone_) return;
  look();
  look_again_soon();
}

void WatchdogThread::look_again_soon() {
  soon_.expires_after(kSoon);
  soon_.async_wait([this](const asio::error_code& stopped) {
    const bool unsettled = overdue_ns_ != 0 || is_over() || std::ranges::any_of(peers_, &Peer::dead);
    if (!stopped && unsettled) look_soon();
  });
}

Beat WatchdogThread::make_beat() {
  Beat beat{.where = comm_.activity().status(),
            .witnessed_rank = witnessed_,
            .witnessed_state = witnessed_state_,
            .traced = traced_};
  put_text(comm_.activity().device.get(), beat.device);
  return beat;
}

void WatchdogThread::look() {
  const std::int64_t now = clock_ns();
  forgive_absence(std::exchange(last_look_ns_, now), now, std::chrono::nanoseconds(interval_).count(),
                  peers_);
  look_at_processes(now);
  look_at_deaths(now);
  Peer& self = at(peers_, rank_);
  self.where = comm_.activity().status();
  patience_ = traced_ || FailureDetector::held_by_debugger(peers_);
  if (is_over()) return shutdown_.go_on(now, overdue_ns_);
  const Findings findings = detector_.look(now, peers_);
  for (const std::string& notice : findings.notices) print_error(notice);
  if (findings.verdict) leave_because_of(*findings.verdict);
  if (findings.adopted) shutdown_.follow();
  const bool looked_around = overdue_ns_ != 0 && now - overdue_ns_ > kLookAroundNs;
  if (!is_over() && looked_around) leave_because_of(detector_.find_overdue(now, peers_));
}

/// Examines silent ranks on this host through /proc; a debugger at this process is reported to all.
void WatchdogThread::look_at_processes(std::int64_t now) {
  traced_ = is_traced();
  witnessed_ = -1;
  const std::string& host = at(peers_, rank_).who.host;
  for (Peer& peer : peers_) {
    if (peer.who.rank == rank_ || peer.who.host != host || !detector_.is_silent(peer, now)) continue;
    peer.state = state_of_process(peer.who.pid);
    witnessed_ = peer.who.rank;
    witnessed_state_ = peer.state;
  }
}

/// Ranks of a host often die together. Open MPI's mpirun kills the others some 30 ms after the second one: too soon
/// for connections, which close when the kernel has freed a large process.
void WatchdogThread::look_at_deaths(std::int64_t now) {
  if (std::ranges::none_of(peers_, &Peer::dead)) return;
  for (Peer& peer : peers_) {
    const bool may_end = peer.in_proc && peer.watched && !peer.dead && !peer.leaving;
    // It may have said why, and that was not read yet: the second look counts.
    if (may_end && is_ending(peer.who.pid) && std::exchange(peer.ending, true)) {
      peer.dead = true;
      peer.lost_ns = now;
    }
  }
}

void WatchdogThread::leave_because_of(const Verdict& verdict) {
  shutdown_.begin(verdict);
  look_again_soon();
}

void WatchdogThread::finish(const Message& last) {
  gone_ = true;
  heartbeat_.send_last(last);
  finish_when_sent(100);
}

/// Not for ever: a silent peer receives nothing.
void WatchdogThread::finish_when_sent(int tries) {
  if (tries == 0 || heartbeat_.all_sent()) {
    shutdown_.settle();
    context_->stop();
    return;
  }
  timer_.expires_after(milliseconds(5));
  timer_.async_wait([this, tries](const asio::error_code& stopped) {
    if (!stopped) finish_when_sent(tries - 1);
  });
}

void forgive_absence(std::int64_t last_look_ns, std::int64_t now_ns, std::int64_t interval_ns, Peers& peers) {
  if (now_ns - last_look_ns - interval_ns < kAwayNs) return;
  for (Peer& peer : peers) {
    peer.heard_ns = now_ns;
    peer.where.since_ns = std::max(peer.where.since_ns, now_ns - interval_ns);
  }
}

// Reads /proc/PID/stat and /proc/self/status.

namespace {

constexpr unsigned long kExiting = 0x4;  // PF_EXITING of the kernel's include/linux/sched.h

std::string folder_of(int pid) {
  return fmt::format("/proc/{}", pid);
}

/// A thread removes the signal from its pending ones (SigPnd) before it shows that it ends. The process's keep it.
bool is_killed(int pid) {
  const auto is_pending = [&](std::string_view where) {
    unsigned long signals = 0;
    std::istringstream(value_after(folder_of(pid) + "/status", where)) >> std::hex >> signals;
    return (signals >> (SIGKILL - 1) & 1U) != 0;
  };
  return is_pending("SigPnd:") || is_pending("ShdPnd:");
}

}  // namespace

char state_of_process(int pid) {
  const std::string stat = process_stat(folder_of(pid));
  return stat.empty() ? '?' : stat.front();
}

bool runs_this_program(int pid) {
  std::error_code hidden;
  return std::filesystem::equivalent("/proc/self/exe", folder_of(pid) + "/exe", hidden);
}

bool is_ending(int pid) {
  return is_killed(pid) || shows_end(process_stat(folder_of(pid)));
}

bool shows_end(const std::string& stat) {
  std::istringstream words(stat);
  char state = 'X';
  std::string skipped;
  unsigned long flags = 0;
  words >> state;
  for (int i = 0; i < 5; ++i) words >> skipped;  // parent, group, session, terminal, its group
  words >> flags;
  return state == 'X' || state == 'Z' || (flags & kExiting) != 0;
}

bool is_traced() {
  return value_after("/proc/self/status", "TracerPid:").find_first_not_of('0') != std::string::npos;
}

}  // namespace lockstep::watchdog

std::unique_ptr<lockstep::Watchdog> lockstep::Watchdog::start(Communicator& comm) {
  if (comm.size() == 1) return nullptr;
  auto roll = watchdog::call_roll(comm);
  return roll ? std::make_unique<watchdog::WatchdogThread>(comm, std::move(*roll)) : nullptr;
}
