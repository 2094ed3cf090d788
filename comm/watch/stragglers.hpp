// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who holds the others up: compares when the ranks' gradients were ready, bucket by bucket, and what that took.
#pragma once

#include "comm/communicator.hpp"
#include "comm/rank_status.hpp"
#include "comm/watch/heartbeat.hpp"

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::watchdog {

/// Judges the last eighty steps, every ten steps: a rank that becomes slow is named within a hundred. A rank is named
/// if it has worked longest for most buckets, in both halves of the eighty and more often than chance would have it,
/// and its work for a grain takes 4 % longer than in the middle of the others: both, because who has more grains than
/// others works longest without any fault, and on an even machine some rank must be last.
///
/// What a rank waits for a processor is no work, and so a rank that only waits is not named; it is crowded. Beside
/// others' programs work itself takes longer, now for one rank and now for another: so where ranks wait for
/// processors for a tenth of their time or more, a slow rank must be so by half of that share more, and for three
/// seconds, or by 75 %.
class Stragglers {
 public:
  explicit Stragglers(std::vector<std::string> hosts);

  /// @param arrivals  with times by one clock for all ranks
  void add(int rank, const std::vector<Arrival>& arrivals);

  /// Of the last eighty steps, with what was named at any time; empty before there were as many.
  const std::vector<RankScore>& scores() const { return scores_; }
  /// Ranks that were named since the last call, each once in a run.
  std::vector<RankScore> newly_named();
  /// Ranks that others wait for, for three seconds by now, because they wait for a processor; one of each host in a
  /// run.
  std::vector<RankScore> newly_crowded();

 private:
  struct Bucket {
    std::vector<std::optional<Arrival>> by_rank;
    std::size_t there = 0;
  };
  /// Of one step, of one rank.
  struct Share {
    int last = 0;        ///< buckets in which it arrived last
    double late_ns = 0;  ///< in those, behind the middle of the others
    int most = 0;        ///< buckets for which it had worked longest
    double work = 0;     ///< nanoseconds a grain; 0: it had none
    double between = 0;
    double queued = 0;
    double wall() const { return work + queued; }
  };
  struct Step {
    std::int64_t number = 0, arrived_ns = 0;
    int buckets = 0;
    std::vector<Share> by_rank;
  };

  /// What is typical of each rank, for a grain.
  struct Typical {
    std::vector<double> work, between, wall;
  };
  /// The median of all values but one of them, for each of them.
  class MedianOfOthers {
   public:
    explicit MedianOfOthers(std::vector<double> values);
    double operator()(double without) const;

   private:
    std::vector<double> sorted_;
  };
  /// Of the other ranks.
  struct Middle {
    MedianOfOthers work, between, wall;
    double best_work = 0;
  };
  /// How long something has been so, judgement after judgement.
  class Since {
   public:
    /// @param now  whether it is so in the steps from begin_ns to end_ns; returns for how long
    std::int64_t so_for(bool now, std::int64_t begin_ns, std::int64_t end_ns);

   private:
    std::optional<std::int64_t> since_ns_;
  };
  struct Past {
    double best_work = std::numeric_limits<double>::infinity();
    Since slow, crowded;
  };

  void compare(const std::vector<std::optional<Arrival>>& arrivals);
  void count_last(Step& step, const std::vector<std::optional<Arrival>>& arrivals) const;
  void judge();
  RankScore judge_rank(std::size_t rank, const Typical& typical, const Middle& middle, double load);
  bool mostly(int Share::*of, std::size_t rank) const;
  double share(int Share::*of, std::size_t rank, std::size_t begin, std::size_t end) const;
  double queued_share(std::size_t rank) const;
  template <typename Of>
  std::vector<double> typical(const Of& of) const;
  void remember(const RankScore& now);

  std::vector<std::string> hosts_;
  std::map<std::pair<std::int64_t, std::int32_t>, Bucket> open_;
  std::deque<Step> steps_;  ///< the last ones; all but the newest are complete
  int since_judged_ = 0;
  std::vector<Past> past_;
  std::vector<RankScore> scores_;
  std::vector<RankScore> newly_named_, newly_crowded_;
  std::set<std::string> crowded_hosts_;
};

// Takes what every rank notes of its gradients to rank 0, which compares: who holds the others up.

/// On the watchdog's thread, but for scores().
class Comparison {
 public:
  /// Borrows all of them.
  Comparison(Communicator& comm, Heartbeat& heartbeat, const std::vector<Peer>& peers);

  /// To rank 0: what has come together here since the last time. Where that is much, not of every step.
  void report();
  /// Rank 0: what another has reported. Says who holds the others up, and which host is too full. Elsewhere nothing
  /// happens.
  void add(int rank, std::vector<Arrival> arrivals);

  /// On rank 0.
  std::vector<RankScore> scores() const;

  /// Of fast steps of many ranks every second, fourth, ... is compared: by all ranks the same ones, whose steps take as
  /// long. Where two ranks take different numbers, the steps of one are among those of the other.
  static std::int64_t every(std::size_t arrivals, std::size_t ranks);

 private:
  Communicator& comm_;
  Heartbeat& heartbeat_;
  const std::vector<Peer>& peers_;
  Stragglers stragglers_;
  mutable std::mutex mutex_;
  std::vector<RankScore> scores_;  ///< under mutex_
};

}  // namespace lockstep::watchdog
