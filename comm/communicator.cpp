// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Waiting: hot at first, then patient, and not for ever.
#include "comm/communicator.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace lockstep {
namespace {

using Seconds = std::chrono::duration<double>;

// A wait begins hot. Most collectives end within microseconds, and a thread that yields to a busy machine is back
// only milliseconds later. A long wait yields, and then sleeps, for then a rank is late by far more than a
// sleep: half a thousandth of what it has waited for, so that hundreds of ranks on a few cores leave these to the one
// that all wait for.
constexpr Seconds kSpin{10e-3};
constexpr Seconds kYield{100e-3};
constexpr double kSleepShare = 0.5e-3;
constexpr Seconds kLongestSleep{5e-3};
/// Between two tests more than this never passes while a process runs: it was stopped, or the machine slept.
constexpr Seconds kMostBetweenTests{1};

void pause_after(Seconds waited, bool core_is_wanted) {
  if (waited > kYield) {
    std::this_thread::sleep_for(std::min(waited * kSleepShare, kLongestSleep));
  } else if (core_is_wanted || waited > kSpin) {
    std::this_thread::yield();
  }
}

[[noreturn]] void throw_peer_lost(const Communicator& comm, std::string_view what, Seconds waited) {
  throw PeerLostError(
      fmt::format("rank {} of {} on {} waited {:g} s for the other ranks in {}: a rank died, hangs or cannot "
                  "be reached; see what the other ranks said last and start the job again (if a rank is only "
                  "slow, raise {})",
                  comm.rank_in_whole(), comm.size_of_whole(), comm.host(),
                  std::min(waited, comm.timeout()).count(), what, spelling().timeout));
}

}  // namespace

void Communicator::send(std::span<const std::byte> data, int to, int tag) {
  wait(*point_to_point().start_send(data, to, tag), fmt::format("a message to rank {}", to));
}

void Communicator::receive(std::span<std::byte> data, int from, int tag) {
  wait(*point_to_point().start_receive(data, from, tag), fmt::format("a message from rank {}", from));
}

std::unique_ptr<Communicator> Communicator::split(int colour) {
  auto part = make_part(colour);
  part->whole_ = this;
  return part;
}

void Communicator::wait(PendingCollective& pending, std::string_view what, Waiting whom) {
  PeerWatch* const watch = this->watch();
  // Others may wait in other groups: that is no place where all ranks meet.
  const bool in_part = whole_ != nullptr;
  activity().begin_wait(in_part ? fmt::format("its group: {}", what) : std::string(what),
                        in_part ? Waiting::kForSome : whom);
  auto before = Clock::now();
  Seconds waited{0};
  while (!pending.test()) {
    const auto now = Clock::now();
    waited += std::min<Seconds>(now - before, kMostBetweenTests);
    before = now;
    const bool is_over = watch != nullptr && watch->is_over();
    const bool patient = watch != nullptr && watch->has_patience();
    if (is_over || (waited > timeout() && !patient)) throw_peer_lost(*this, what, waited);
    pause_after(waited, oversubscribed() || pending.needs_this_core());
  }
  activity().end_wait();
}

}  // namespace lockstep
