// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Plays the rounds of all ranks through, two partners at a time.
#include "simulation/alpha_beta.hpp"

#include "comm/latency.hpp"
#include "common/error.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep {
namespace {

class Play {
 public:
  Play(ReduceKind kind, const Cluster& cluster, std::size_t count, std::size_t bytes)
      : cluster_(cluster), bytes_(static_cast<double>(bytes)) {
    for (int rank = 0; rank < cluster.ranks; ++rank) {
      rounds_.push_back(reduce_rounds(kind, cluster, rank, count, bytes));
      for (std::size_t round = 0; round < rounds_.back().size(); ++round) count_sharers(rank, round);
    }
    next_.resize(rounds_.size());
    clock_.resize(rounds_.size());
  }

  double run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < cluster_.ranks; ++rank) {
        while (meet(rank)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < rounds_.size(); ++rank)
      LOCKSTEP_CHECK(next_[rank] == rounds_[rank].size());
    return *std::ranges::max_element(clock_);
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  void count_sharers(int rank, std::size_t round) {
    const Exchange& exchange = rounds_[at(rank)][round];
    if (exchange.send.count > 0 && cluster_.links_between(rank, exchange.peer) > 0)
      ++sharers_[{cluster_.node_of(rank), round}];
  }

  const Exchange* current(int rank) const {
    const auto& rounds = rounds_[at(rank)];
    return next_[at(rank)] < rounds.size() ? &rounds[next_[at(rank)]] : nullptr;
  }

  /// The next round of a rank, if its partner is there, too.
  bool meet(int rank) {
    const Exchange* mine = current(rank);
    if (mine == nullptr) return false;
    const Exchange* theirs = current(mine->peer);
    if (theirs == nullptr || theirs->peer != rank) return false;
    LOCKSTEP_CHECK(mine->send.count == theirs->receive.count && mine->receive.count == theirs->send.count);
    const int peer = mine->peer;
    const double start = std::max(clock_[at(rank)], clock_[at(peer)]);
    const double travel = std::max(seconds(rank, *mine), seconds(peer, *theirs));
    const double mine_added = added(*mine), theirs_added = added(*theirs);
    clock_[at(rank)] = start + travel + mine_added;
    clock_[at(peer)] = start + travel + theirs_added;
    ++next_[at(rank)];
    ++next_[at(peer)];
    return true;
  }

  double seconds(int rank, const Exchange& exchange) {
    const NetworkConstants& network = cluster_.network;
    const double sent = static_cast<double>(exchange.send.count) * bytes_;
    if (exchange.send.count == 0) return 0;
    const int links = cluster_.links_between(rank, exchange.peer);
    if (links == 0) return network.local_latency + sent / network.local_bandwidth;
    const int sharers = sharers_[{cluster_.node_of(rank), next_[at(rank)]}];
    return network.latency + links * network.link_latency + sent * sharers / network.bandwidth;
  }

  double added(const Exchange& exchange) const {
    return exchange.add
               ? static_cast<double>(exchange.receive.count) * bytes_ / cluster_.network.sum_bandwidth
               : 0;
  }

  const Cluster& cluster_;
  double bytes_;
  std::vector<std::vector<Exchange>> rounds_;
  std::map<std::pair<int, std::size_t>, int> sharers_;  ///< by node and number of the round
  std::vector<std::size_t> next_;
  std::vector<double> clock_;
};

}  // namespace

double all_reduce_seconds(ReduceKind kind, const Cluster& cluster, std::size_t count,
                          std::size_t bytes_per_element) {
  return Play(kind, cluster, count, bytes_per_element).run();
}

std::vector<LatencyPoint> latency_of_model(ReduceKind kind, const Cluster& cluster, std::size_t max_bytes,
                                           std::size_t bytes_per_element) {
  std::vector<LatencyPoint> points;
  for (const std::size_t bytes : latency_sizes(max_bytes)) {
    points.push_back(
        {bytes, all_reduce_seconds(kind, cluster, bytes / bytes_per_element, bytes_per_element)});
  }
  return points;
}

}  // namespace lockstep
