// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Comparison: what a beat carries of the arrivals, and what rank 0 makes of them.
#include "comm/watchdog/comparison.hpp"

#include "common/console/output.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep::watchdog {
namespace {

std::vector<std::string> hosts_of_all(const std::vector<Peer>& peers) {
  std::vector<std::string> hosts;
  hosts.reserve(peers.size());
  for (const Peer& peer : peers) hosts.push_back(peer.who.host);
  return hosts;
}

}  // namespace

Comparison::Comparison(Communicator& comm, Heartbeat& heartbeat, const std::vector<Peer>& peers)
    : comm_(comm), heartbeat_(heartbeat), peers_(peers), stragglers_(hosts_of_all(peers)) {}

void Comparison::report() {
  const std::int64_t every = 1 + static_cast<std::int64_t>(peers_.size()) / 64;
  std::vector<Arrival> list = comm_.activity().arrivals().take();
  std::erase_if(list, [&](const Arrival& arrival) { return arrival.step % every != 0; });
  if (list.empty()) return;
  if (comm_.rank() == 0) return add(0, std::move(list));
  for (std::size_t begin = 0; begin < list.size(); begin += kMostArrivals) {
    const auto from = list.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kMostArrivals, list.size() - begin));
    heartbeat_.send(0, Arrivals{{from, from + count}});
  }
}

void Comparison::add(int rank, std::vector<Arrival> arrivals) {
  if (comm_.rank() != 0) return;
  const auto offset = heartbeat_.offset(rank);
  if (rank != 0 && !offset) return;
  // On one host there is one clock.
  const bool same_clock = peers_[static_cast<std::size_t>(rank)].who.host == peers_.front().who.host;
  const std::int64_t ahead = same_clock ? 0 : offset->ahead_ns;
  for (Arrival& arrival : arrivals) arrival.arrived_ns -= ahead;
  stragglers_.add(rank, arrivals);
  for (const RankScore& named : stragglers_.newly_named()) print_error(describe(named));
  for (const RankScore& crowded : stragglers_.newly_crowded()) print_error(describe_crowded(crowded));
  const std::lock_guard lock(mutex_);
  scores_ = stragglers_.scores();
}

std::vector<RankScore> Comparison::scores() const {
  const std::lock_guard lock(mutex_);
  return scores_;
}

}  // namespace lockstep::watchdog
