// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The host's part: ranks that find each other's memory, sums of any size, and ends that cannot hang.
#include "comm/peers/peers.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Seconds = std::chrono::duration<double>;

/// Host names may differ in containers of one machine; without an id of its boot they are what there is.
void require_one_machine(Communicator& comm) {
  std::vector<std::string> machines = gather_text(comm, host_boot_id());
  if (std::ranges::count(machines, "") > 0) machines = gather_hosts(comm);
  const auto other = std::ranges::find_if(machines, [&](const auto& id) { return id != machines.front(); });
  if (other == machines.end()) return;
  throw DeviceError(fmt::format("rank {} is on another host than rank 0", other - machines.begin()));
}

std::unique_ptr<PeerSums> make_peer_sums(Communicator& comm, Device& device) {
  if (comm.size() > PeerSums::kMostRanks)
    throw DeviceError(fmt::format("there are {} ranks, and at most {} read each other's memory", comm.size(),
                                  PeerSums::kMostRanks));
  auto sums = device.make_peer_sums(comm.rank(), comm.size(), kPeerSumBytes);
  if (sums == nullptr)
    throw DeviceError(fmt::format("devices of kind {} read no other's memory", device.kind()));
  return sums;
}

/// Runs `action` on all ranks; the lowest that cannot says why.
template <typename Action>
void agree_on_peers(Communicator& comm, const Action& action) {
  agree(comm, [&] {
    try {
      action();
    } catch (const DeviceError& error) {
      throw DeviceError(fmt::format("{}peers: {}; {}", spelling().backend, error.what(),
                                    advice("use {backend}nccl, mpi or auto")));
    }
  });
}

std::unique_ptr<PeerSums> open_peer_sums(Communicator& comm, Device& device) {
  std::unique_ptr<PeerSums> sums;
  PeerAddress mine;
  agree_on_peers(comm, [&] { require_one_machine(comm); });
  agree_on_peers(comm, [&] {
    sums = make_peer_sums(comm, device);
    mine = sums->address();
  });
  const std::vector<PeerAddress> all = gather(comm, mine);
  agree_on_peers(comm, [&] { sums->open(all); });
  return sums;
}

class PeerAllReduce final : public DeviceAllReduce {
 public:
  PeerAllReduce(Communicator& comm, Device& device, std::unique_ptr<DeviceAllReduce> other)
      : comm_(comm),
        watch_(comm.watch()),
        timeout_(comm.timeout()),
        ranks_in_whole_(gather(comm, comm.rank_in_whole())),
        sums_(open_peer_sums(comm, device)),
        other_(other != nullptr && other->on_stream() ? std::move(other) : nullptr),
        name_("GPUs that read each other's memory") {
    if (other_ != nullptr)
      name_ += fmt::format("; above {} {}", format_memory(kPeerSumBytes), other_->name());
    guard_ = start_thread([this] { guard(); });
  }
  ~PeerAllReduce() override;
  PeerAllReduce(const PeerAllReduce&) = delete;
  PeerAllReduce& operator=(const PeerAllReduce&) = delete;

  std::string_view name() const override { return name_; }
  bool on_stream() const override { return true; }
  void all_reduce(Stream& stream, std::int64_t* device, std::size_t count) override {
    reduce(stream, device, device, count);
  }
  void all_reduce(Stream& stream, float* device, std::size_t count) override {
    reduce(stream, device, device, count);
  }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) override {
    reduce(stream, terms, sums, count);
  }
  void check() override {
    confirm();
    if (other_ != nullptr) other_->check();
  }
  void confirm() override;

 private:
  static constexpr std::chrono::milliseconds kBetweenLooks{20};

  template <typename T>
  void reduce(Stream& stream, const T* terms, T* sums, std::size_t count) {
    constexpr std::size_t kMost = kPeerSumBytes / sizeof(T);
    if (count > kMost && other_ != nullptr) return other_->all_reduce_into(stream, terms, sums, count);
    for (std::size_t at = 0; at < count; at += kMost)
      sums_->sum(stream, terms + at, sums + at, std::min(kMost, count - at));
    confirm();
  }

  void guard();
  bool is_late(const PeerSums::Wait& wait);

  Communicator& comm_;
  // The guard's, which asks the communicator nothing: that may be in use, or gone.
  const PeerWatch* watch_;
  Seconds timeout_;
  std::vector<int> ranks_in_whole_;
  std::unique_ptr<PeerSums> sums_;
  std::unique_ptr<DeviceAllReduce> other_;
  std::string name_;
  int exceptions_ = std::uncaught_exceptions();

  PeerSums::SumNumber awaited_ = 0;  ///< the guard's: the sum that a kernel waited for when it looked last
  Seconds waited_{0};                ///< since when
  std::atomic<int> lost_ = -1;       ///< the rank for which kernels waited in vain

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;  ///< under the mutex
  std::thread guard_;
};

/// By its own count, so that time in which this process was stopped is none.
bool PeerAllReduce::is_late(const PeerSums::Wait& wait) {
  waited_ = wait.sum == awaited_ ? Seconds(waited_ + kBetweenLooks) : Seconds{0};
  awaited_ = wait.sum;
  if (watch_ == nullptr) return waited_ > timeout_;
  return watch_->is_over() || (waited_ > timeout_ && !watch_->has_patience());
}

void PeerAllReduce::guard() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBetweenLooks, [this] { return ends_; })) {
    const auto wait = sums_->waits_for();
    if (!wait || lost_ >= 0) {
      awaited_ = 0;
    } else if (is_late(*wait)) {
      lost_ = wait->rank;
      sums_->end_waits();
    }
  }
}

void PeerAllReduce::confirm() {
  const int lost = lost_;
  if (lost < 0) return;
  throw PeerLostError(fmt::format(
      "rank {} of {} on {} waited for the terms of rank {} in a sum over the GPUs' memory: that "
      "rank died, hangs or cannot be reached; see what the other ranks said last and start the job "
      "again (if it is only slow, raise {})",
      comm_.rank_in_whole(), comm_.size_of_whole(), comm_.host(),
      ranks_in_whole_[static_cast<std::size_t>(lost)], spelling().timeout));
}

/// What another rank still reads is not freed: so all ranks come together, but after a failure.
PeerAllReduce::~PeerAllReduce() {
  const bool fails = std::uncaught_exceptions() > exceptions_ || lost_ >= 0;
  other_.reset();
  if (fails) sums_->end_waits();
  sums_->close();
  try {
    if (!fails) comm_.barrier();
  } catch (const std::exception& error) {
    print_error(fmt::format("rank {} on {}: {}", comm_.rank_in_whole(), comm_.host(), error.what()));
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  guard_.join();
}

}  // namespace

std::unique_ptr<DeviceAllReduce> make_peer_all_reduce(Communicator& comm, Device& device,
                                                      std::unique_ptr<DeviceAllReduce> other) {
  return std::make_unique<PeerAllReduce>(comm, device, std::move(other));
}

}  // namespace lockstep
