// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The lowest reachable rank reports; all ranks derive it from the same heartbeats. The others wait a while for its
/// report.
#include "comm/watch/shutdown.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <future>
#include <memory>

namespace lockstep::watchdog {
namespace {

/// A rank that has not heard the speaker by then speaks itself.
constexpr std::int64_t kSpeakAfterNs = 1'500'000'000;
/// A rank without connections exits at once; pending sends are completed first.
constexpr std::int64_t kSpeakAloneAfterNs = 1'000'000'000;
/// MPI_Abort() waits for the launcher, which may be asleep: Open MPI's mpirun is, for seconds, after a rank has died.
/// It has been told by then.
constexpr std::int64_t kAbortWithinNs = 300'000'000;
/// A directory that stalls must not stop this thread.
constexpr std::chrono::milliseconds kWriteWithin{500};

}  // namespace

void Shutdown::follow() {
  over_ns_ = clock_ns();
  over_ = true;
  settle();
}

Leaving Shutdown::farewell(bool spoken) const {
  return {static_cast<int>(ExitCode::kPeerLost),
          verdict_->initiating.empty() ? comm_.rank() : verdict_->initiating.front(), spoken};
}

void Shutdown::begin(const Verdict& verdict) {
  verdict_ = verdict;
  over_ns_ = clock_ns();
  over_ = true;
  // The launcher is about to tell all ranks to stop: this one has stopped.
  std::signal(SIGTERM, SIG_IGN);
  heartbeat_.send_to_all(farewell(false));
  go_on(over_ns_, 0);
}

void Shutdown::go_on(std::int64_t now_ns, std::int64_t ready_ns) {
  const bool done = settled_ && ready_ns != 0 && now_ns - std::max(ready_ns, settled_ns_) > kAbortWithinNs;
  if (done || now_ns - over_ns_ > kLeaveWithinNs) _exit(static_cast<int>(ExitCode::kPeerLost));
  if (settled_) return;
  const bool told =
      std::ranges::any_of(peers_, [](const Peer& peer) { return peer.leaving && peer.farewell.spoken; });
  if (told) return settle();
  const bool alone =
      comm_.rank() != 0 && detector_.may_be_cut_off(now_ns, peers_) && verdict_->cause != Cause::kDied;
  const std::int64_t patience = alone                              ? kSpeakAloneAfterNs
                                : detector_.speaks(now_ns, peers_) ? 0
                                                                   : kSpeakAfterNs;
  if (now_ns - over_ns_ >= patience) speak(now_ns);
}

void Shutdown::speak(std::int64_t now_ns) {
  const auto lines =
      describe(*verdict_, peers_,
               {comm_.rank(), now_ns, comm_.timeout().count(), comm_.activity().restart_advice.get()});
  // Two ranks may speak at the same time: the first to write the verdict says it. A rank that hears nothing may be on
  // the other side of a cut network, where its verdict is not seen.
  const bool maybe_cut_off = verdict_->cause == Cause::kSilent || verdict_->cause == Cause::kNetwork;
  if (write_down(lines) || maybe_cut_off)
    for (const std::string& line : lines) print_error(line);
  heartbeat_.send_to_all(farewell(true));
  settle();
}

void Shutdown::settle() {
  const std::lock_guard lock(mutex_);
  if (!settled_) settled_ns_ = clock_ns();
  settled_ = true;
  changed_.notify_all();
}

bool Shutdown::wait_until_settled(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return settled_; });
}

/// For later readers. False if another rank has done so.
bool Shutdown::write_down(const std::vector<std::string>& lines) {
  const std::string path = comm_.activity().verdict_file.get();
  if (path.empty()) return true;
  auto first = std::make_shared<std::promise<bool>>();
  auto is_first = first->get_future();
  try {
    start_thread([first, path, lines] {
      std::FILE* file = std::fopen(path.c_str(), "wx");
      const bool is_another_s = file == nullptr && errno == EEXIST;
      for (const std::string& line : lines)
        if (file != nullptr) std::fprintf(file, "%s\n", line.c_str());
      if (file != nullptr) std::fclose(file);
      first->set_value(!is_another_s);
    }).detach();
  } catch (const Error&) {
    return true;
  }
  return is_first.wait_for(kWriteWithin) != std::future_status::ready || is_first.get();
}

}  // namespace lockstep::watchdog
