// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who holds the others up: compares when the ranks' gradients were ready, bucket by bucket.
#pragma once

#include "comm/activity/arrival.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::watchdog {

/// Judges every hundred steps. A rank is named if it arrives last in most buckets, in both halves of the hundred,
/// and its work for a grain takes 4 % longer than in the middle of the others: both, because who has more grains
/// than others arrives last without any fault, and on an even machine somebody must be last.
class Stragglers {
 public:
  explicit Stragglers(std::vector<std::string> hosts);

  /// @param arrivals  with times by one clock for all ranks
  void add(int rank, const std::vector<Arrival>& arrivals);

  /// Of the last hundred steps, with what was named at any time; empty before there were as many.
  const std::vector<RankScore>& scores() const { return scores_; }
  /// Ranks that were named since the last call, each once in a run.
  std::vector<RankScore> newly_named();

 private:
  struct Bucket {
    std::vector<std::optional<Arrival>> by_rank;
    std::size_t there = 0;
  };
  struct Sums {
    std::int64_t last = 0, last_in_first_half = 0, late_ns = 0;
    std::vector<double> work = {}, between = {};  ///< nanoseconds a grain
  };

  void compare(const std::vector<std::optional<Arrival>>& arrivals);
  void judge();

  std::vector<std::string> hosts_;
  std::map<std::pair<std::int64_t, std::int32_t>, Bucket> open_;
  std::int64_t first_step_ = -1;  ///< of this hundred
  std::int64_t buckets_ = 0, buckets_in_first_half_ = 0;
  std::vector<Sums> sums_;
  std::vector<double> best_work_;
  std::vector<RankScore> scores_;
  std::vector<int> named_windows_;
  int windows_ = 0;
  std::vector<RankScore> newly_;
};

}  // namespace lockstep::watchdog
