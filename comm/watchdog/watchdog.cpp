// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The thread: looks at the peers, lets a judge decide, and does what that says.
#include "comm/watchdog/watchdog.hpp"

#include "comm/activity/flight_record.hpp"
#include "comm/activity/flight_recorder.hpp"
#include "comm/gather.hpp"
#include "comm/watchdog/addresses.hpp"
#include "comm/watchdog/heartbeat.hpp"
#include "comm/watchdog/judge.hpp"
#include "comm/watchdog/process_state.hpp"
#include "comm/watchdog/roll_call.hpp"
#include "comm/watchdog/stragglers.hpp"
#include "common/console/output.hpp"
#include "common/error.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

using namespace watchdog;

namespace {

using std::chrono::milliseconds;

/// Who has not heard the speaker by then speaks itself.
constexpr std::int64_t kSpeakAfterNs = 1'500'000'000;
constexpr std::int64_t kSpeakAloneAfterNs = 2'500'000'000;
/// How long the main thread may take to leave in good order, with a save that is under way.
constexpr std::int64_t kLeaveWithinNs = 5'000'000'000;
/// An error of MPI may come before the death of its cause is seen.
constexpr std::int64_t kLookAroundNs = 500'000'000;
/// A look that comes so late: this process was stopped, or the machine slept, and heard nobody meanwhile.
constexpr std::int64_t kAwayNs = 1'000'000'000;
constexpr milliseconds kSoon{50};

milliseconds interval_for(const Limits& limits) {
  return milliseconds(std::clamp<int>(static_cast<int>(limits.silent_seconds * 1000 / 6), 10, 500));
}

std::vector<std::string> hosts_of(const std::vector<Peer>& peers) {
  std::vector<std::string> hosts;
  for (const Peer& peer : peers) hosts.push_back(peer.who.host);
  return hosts;
}

}  // namespace

class Watchdog::Thread {
 public:
  Thread(Communicator& comm, RollCall roll)
      : comm_(comm),
        rank_(comm.rank()),
        limits_(Limits::for_timeout(comm.timeout().count())),
        interval_(interval_for(limits_)),
        peers_(std::move(roll.peers)),
        judge_(rank_, limits_),
        context_(std::move(roll.context)),
        timer_(*context_),
        soon_(*context_),
        heartbeat_(*context_, std::move(roll.acceptor), rank_, roll.token, peers_,
                   {.make_beat = [this](const Peer&) { return make_beat(); },
                    .arrivals = [this](int rank, const Arrivals& list) { compare(rank, list.list); },
                    .changed = [this] { look_soon(); }}),
        stragglers_(hosts_of(peers_)) {
    // Signals are the main thread's.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~Thread() {
    asio::post(*context_, [this] { say_goodbye(); });
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  bool is_over() const { return over_.load(std::memory_order_relaxed); }
  void report_now() {
    asio::post(*context_, [this] { report_arrivals(); });
  }
  std::vector<RankScore> scores() const {
    const std::lock_guard lock(scores_mutex_);
    return scores_;
  }
  bool has_patience() const { return patience_.load(std::memory_order_relaxed); }
  void drop_network() {
    asio::post(*context_, [this] { heartbeat_.drop_network(); });
  }

  bool accounts_for_loss() {
    asio::post(*context_, [this] {
      if (overdue_ns_ == 0) overdue_ns_ = clock_ns();
      look_soon();
    });
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(2 * kLeaveWithinNs), [this] { return settled_; });
  }

  void leave_alone(int code) {
    asio::post(*context_, [this, code] {
      gone_ = true;
      heartbeat_.send_to_all(Leaving{code, -1, true});
      finish_when_sent(100);
    });
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(1), [this] { return settled_; });
  }

 private:
  void run();
  Beat make_beat();
  void look();
  void look_soon();
  void report_arrivals();
  void compare(int rank, std::vector<Arrival> arrivals);
  void schedule();
  void forgive_own_absence(std::int64_t now);
  void look_at_processes(std::int64_t now);
  void act_on(const Findings& findings);
  void leave_because_of(const Verdict& verdict);
  void leave_on(std::int64_t now);
  void look_into_records();
  void speak(std::int64_t now);
  void settle();
  bool write_down(const std::vector<std::string>& lines);
  void say_goodbye();
  void finish_when_sent(int tries);

  Communicator& comm_;
  int rank_;
  Limits limits_;
  milliseconds interval_;
  std::vector<Peer> peers_;
  Judge judge_;
  std::unique_ptr<asio::io_context> context_;
  asio::steady_timer timer_, soon_;
  Heartbeat heartbeat_;
  std::optional<Verdict> verdict_;
  Stragglers stragglers_;  ///< rank 0's
  mutable std::mutex scores_mutex_;
  std::vector<RankScore> scores_;  ///< under scores_mutex_
  std::int64_t last_look_ns_ = 0, overdue_ns_ = 0, over_ns_ = 0;
  int witnessed_ = -1;
  char witnessed_state_ = '?';
  bool traced_ = false;
  bool gone_ = false;  ///< said goodbye: nothing is looked at any more

  std::atomic<bool> over_{false}, patience_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool settled_ = false;  ///< under mutex_: the verdict has been spoken
  std::thread thread_;
};

void Watchdog::Thread::run() {
  last_look_ns_ = clock_ns();
  heartbeat_.start();
  schedule();
  context_->run();
}

void Watchdog::Thread::schedule() {
  timer_.expires_after(interval_);
  timer_.async_wait([this](const asio::error_code& stopped) {
    if (stopped || gone_) return;
    heartbeat_.beat();
    report_arrivals();
    look();
    schedule();
  });
}

/// Once now, and again when what has just begun may have settled.
void Watchdog::Thread::look_soon() {
  if (gone_) return;
  look();
  soon_.expires_after(kSoon);
  soon_.async_wait([this](const asio::error_code& stopped) {
    const bool unsettled = overdue_ns_ != 0 || is_over() || std::ranges::any_of(peers_, &Peer::dead);
    if (!stopped && unsettled) look_soon();
  });
}

Beat Watchdog::Thread::make_beat() {
  Beat beat;
  beat.where = comm_.activity().whereabouts();
  beat.witnessed_rank = witnessed_;
  beat.witnessed_state = witnessed_state_;
  beat.traced = traced_;
  comm_.activity().device().copy(beat.device.data(), beat.device.size() - 1);
  return beat;
}

void Watchdog::Thread::look() {
  const std::int64_t now = clock_ns();
  forgive_own_absence(now);
  look_at_processes(now);
  Peer& self = peers_[static_cast<std::size_t>(rank_)];
  self.where = comm_.activity().whereabouts();
  if (FlightRecorder* recorder = comm_.activity().recorder())
    recorder->alive(rank_ == 0 || !heartbeat_.offset(0) ? 0 : -heartbeat_.offset(0)->ahead_ns);
  patience_ = traced_ || Judge::held_by_debugger(peers_);
  if (is_over()) return leave_on(now);
  act_on(judge_.look(now, peers_));
  const bool looked_around = overdue_ns_ != 0 && now - overdue_ns_ > kLookAroundNs;
  if (!is_over() && looked_around) leave_because_of(judge_.judge_overdue(now, peers_));
}

/// To rank 0, which compares. In large jobs not of every step.
void Watchdog::Thread::report_arrivals() {
  const std::int64_t every = 1 + static_cast<std::int64_t>(peers_.size()) / 64;
  std::vector<Arrival> list = comm_.activity().arrivals().take();
  std::erase_if(list, [&](const Arrival& arrival) { return arrival.step % every != 0; });
  if (rank_ == 0) return compare(0, std::move(list));
  for (std::size_t begin = 0; begin < list.size(); begin += kMostArrivals) {
    const auto from = list.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kMostArrivals, list.size() - begin));
    heartbeat_.send(0, Arrivals{{from, from + count}});
  }
}

void Watchdog::Thread::compare(int rank, std::vector<Arrival> arrivals) {
  if (rank_ != 0) return;
  const auto offset = heartbeat_.offset(rank);
  if (rank != 0 && !offset) return;
  // On one host there is one clock.
  const bool same_clock = peers_[static_cast<std::size_t>(rank)].who.host == peers_.front().who.host;
  const std::int64_t ahead = same_clock ? 0 : offset->ahead_ns;
  for (Arrival& arrival : arrivals) arrival.arrived_ns -= ahead;
  stragglers_.add(rank, arrivals);
  for (const RankScore& named : stragglers_.newly_named()) print_error(describe(named));
  const std::lock_guard lock(scores_mutex_);
  scores_ = stragglers_.scores();
}

void Watchdog::Thread::forgive_own_absence(std::int64_t now) {
  const std::int64_t late = now - last_look_ns_ - std::chrono::nanoseconds(interval_).count();
  last_look_ns_ = now;
  if (late < kAwayNs) return;
  for (Peer& peer : peers_) {
    peer.heard_ns = now;
    peer.where.since_ns = std::max(peer.where.since_ns, now - std::chrono::nanoseconds(interval_).count());
  }
}

/// Of the silent ranks on this host /proc knows more; a debugger at this process is told to all.
void Watchdog::Thread::look_at_processes(std::int64_t now) {
  traced_ = is_traced();
  witnessed_ = -1;
  const std::string& host = peers_[static_cast<std::size_t>(rank_)].who.host;
  for (Peer& peer : peers_) {
    if (peer.who.rank == rank_ || peer.who.host != host || !judge_.is_silent(peer, now)) continue;
    peer.state = state_of_process(peer.who.pid);
    witnessed_ = peer.who.rank;
    witnessed_state_ = peer.state;
  }
}

void Watchdog::Thread::act_on(const Findings& findings) {
  for (const std::string& notice : findings.notices) print_error(notice);
  if (findings.verdict) leave_because_of(*findings.verdict);
  if (!findings.adopted) return;
  over_ns_ = clock_ns();
  over_ = true;
  settle();
}

void Watchdog::Thread::leave_because_of(const Verdict& verdict) {
  verdict_ = verdict;
  over_ns_ = clock_ns();
  over_ = true;
  // The launcher is about to tell all ranks to stop: this one has stopped.
  std::signal(SIGTERM, SIG_IGN);
  if (FlightRecorder* recorder = comm_.activity().recorder()) {
    for (const int lost : verdict.initiating)
      recorder->note(FlightEvent::kRankLost, fmt::format("rank {}", lost));
  }
  heartbeat_.send_to_all(Leaving{static_cast<int>(ExitCode::kPeerLost),
                                 verdict.initiating.empty() ? rank_ : verdict.initiating.front(), false});
  leave_on(over_ns_);
  soon_.expires_after(kSoon);
  soon_.async_wait([this](const asio::error_code& stopped) {
    if (!stopped) look_soon();
  });
}

/// The speaker speaks; the others wait for that, and speak themselves if it does not come.
void Watchdog::Thread::leave_on(std::int64_t now) {
  if (now - over_ns_ > kLeaveWithinNs) _exit(static_cast<int>(ExitCode::kPeerLost));
  if (settled_) return;
  const bool told =
      std::ranges::any_of(peers_, [](const Peer& peer) { return peer.leaving && peer.farewell.spoken; });
  if (told) return settle();
  const bool alone = rank_ != 0 && judge_.hears_nobody(now, peers_) && verdict_->cause != Cause::kDied;
  const std::int64_t patience = alone ? kSpeakAloneAfterNs : judge_.speaks(now, peers_) ? 0 : kSpeakAfterNs;
  if (now - over_ns_ >= patience) speak(now);
}

/// A rank's own record is younger than its last beat, where the run directory can be seen.
void Watchdog::Thread::look_into_records() {
  const std::string directory = comm_.activity().flight_directory();
  if (directory.empty()) return;
  for (const int lost : verdict_->initiating) {
    if (const auto last = last_whereabouts(directory, lost))
      peers_[static_cast<std::size_t>(lost)].where = *last;
  }
}

void Watchdog::Thread::speak(std::int64_t now) {
  if (verdict_->cause == Cause::kDied || verdict_->cause == Cause::kSilent) look_into_records();
  const auto lines = describe(*verdict_, peers_, {rank_, now, limits_.timeout_seconds});
  // Two may come to speak at the same moment: the first to write it down says it. But whoever hears nothing may be on
  // the other side of a cut, where nobody sees what it says.
  const bool maybe_cut_off = verdict_->cause == Cause::kSilent || verdict_->cause == Cause::kNetwork;
  if (write_down(lines) || maybe_cut_off)
    for (const std::string& line : lines) print_error(line);
  heartbeat_.send_to_all(Leaving{static_cast<int>(ExitCode::kPeerLost),
                                 verdict_->initiating.empty() ? rank_ : verdict_->initiating.front(), true});
  settle();
}

void Watchdog::Thread::settle() {
  const std::lock_guard lock(mutex_);
  settled_ = true;
  changed_.notify_all();
}

/// Beside the flight records, for whoever comes later. False if another rank has done so.
bool Watchdog::Thread::write_down(const std::vector<std::string>& lines) {
  const std::string directory = comm_.activity().flight_directory();
  if (directory.empty()) return true;
  std::FILE* file = std::fopen((directory + "/verdict.txt").c_str(), "wx");
  if (file == nullptr) return errno != EEXIST;
  for (const std::string& line : lines) std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
  return true;
}

void Watchdog::Thread::say_goodbye() {
  gone_ = true;
  if (FlightRecorder* recorder = comm_.activity().recorder(); recorder != nullptr && !is_over())
    recorder->note(FlightEvent::kEnd, "");
  heartbeat_.send_to_all(Goodbye{});
  finish_when_sent(100);
}

/// Not for ever: who is silent takes nothing.
void Watchdog::Thread::finish_when_sent(int tries) {
  if (tries == 0 || heartbeat_.all_sent()) {
    settle();
    context_->stop();
    return;
  }
  timer_.expires_after(milliseconds(5));
  timer_.async_wait([this, tries](const asio::error_code& stopped) {
    if (!stopped) finish_when_sent(tries - 1);
  });
}

std::unique_ptr<Watchdog> Watchdog::start(Communicator& comm) {
  if (comm.size() == 1) return nullptr;
  auto roll = call_roll(comm);
  if (!roll) return nullptr;
  return std::unique_ptr<Watchdog>(new Watchdog(comm, std::make_unique<Thread>(comm, std::move(*roll))));
}

Watchdog::Watchdog(Communicator& comm, std::unique_ptr<Thread> thread)
    : comm_(comm), thread_(std::move(thread)) {
  comm_.be_watched(this);
}

Watchdog::~Watchdog() {
  comm_.be_watched(nullptr);
}

bool Watchdog::is_over() const noexcept {
  return thread_->is_over();
}

void Watchdog::report_now() noexcept {
  thread_->report_now();
}

std::vector<RankScore> Watchdog::scores() const {
  return thread_->scores();
}

bool Watchdog::has_patience() const noexcept {
  return thread_->has_patience();
}

void Watchdog::drop_network() noexcept {
  thread_->drop_network();
}

bool Watchdog::accounts_for_loss() {
  return thread_->accounts_for_loss();
}

void Watchdog::leave_alone(int exit_code) {
  thread_->leave_alone(exit_code);
}

}  // namespace lockstep
