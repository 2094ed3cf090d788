// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who holds the others up: compares when the ranks' gradients were ready, bucket by bucket.
#pragma once

#include "comm/activity/arrival.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::watchdog {

/// Judges the last eighty steps, every ten steps: whoever becomes slow is named within a hundred. A rank is named if
/// it arrives last in most buckets, in both halves of the eighty and more often than chance would have it, and its
/// work for a grain takes 4 % longer than in the middle of the others: both, because who has more grains than others
/// arrives last without any fault, and on an even machine somebody must be last.
class Stragglers {
 public:
  explicit Stragglers(std::vector<std::string> hosts);

  /// @param arrivals  with times by one clock for all ranks
  void add(int rank, const std::vector<Arrival>& arrivals);

  /// Of the last eighty steps, with what was named at any time; empty before there were as many.
  const std::vector<RankScore>& scores() const { return scores_; }
  /// Ranks that were named since the last call, each once in a run.
  std::vector<RankScore> newly_named();

 private:
  struct Bucket {
    std::vector<std::optional<Arrival>> by_rank;
    std::size_t there = 0;
  };
  /// Of one step, of one rank.
  struct Share {
    int last = 0;        ///< buckets in which it arrived last
    double late_ns = 0;  ///< in those, behind the middle of the others
    double work = 0;     ///< nanoseconds a grain; 0: it had none
    double between = 0;
  };
  struct Step {
    std::int64_t number = 0;
    int buckets = 0;
    std::vector<Share> by_rank;
  };

  void compare(const std::vector<std::optional<Arrival>>& arrivals);
  void judge();
  RankScore judge_rank(std::size_t rank, const std::vector<double>& work,
                       const std::vector<double>& between) const;
  bool mostly_last(std::size_t rank) const;
  double last_share(std::size_t rank, std::size_t begin, std::size_t end) const;
  std::vector<double> typical(double Share::*of) const;

  std::vector<std::string> hosts_;
  std::map<std::pair<std::int64_t, std::int32_t>, Bucket> open_;
  std::deque<Step> steps_;  ///< the last ones; all but the newest are complete
  int since_judged_ = 0;
  std::vector<double> best_work_;
  std::vector<RankScore> scores_;
  std::vector<RankScore> newly_;
};

}  // namespace lockstep::watchdog
