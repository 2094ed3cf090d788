// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// When a rank's share of a bucket of gradients was ready, and what that took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct Arrival {
  std::int64_t step = 0;        ///< counted from 1
  std::int32_t bucket = 0;      ///< from 0
  std::int32_t grains = 0;      ///< of the step, on this rank
  std::int64_t arrived_ns = 0;  ///< by the rank's clock
  std::int64_t work_ns = 0;     ///< since the last wait for others had ended, without queued_ns
  std::int64_t between_ns = 0;  ///< of that: until the step began
  std::int64_t queued_ns = 0;   ///< what it waited for a processor meanwhile, which others had
};

/// What is not fetched in time is lost. Thread-safe, but for close().
class ArrivalLog {
 public:
  static constexpr std::size_t kMost = 4096;

  /// The work of these ranks is not alike, so nothing follows from who is last. Before the first step.
  void close() { open_ = false; }
  bool is_open() const { return open_; }

  void add(const Arrival& arrival) {
    if (!open_) return;
    const std::lock_guard lock(mutex_);
    if (list_.size() < kMost) list_.push_back(arrival);
  }
  std::vector<Arrival> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(list_, {});
  }

 private:
  bool open_ = true;
  std::mutex mutex_;
  std::vector<Arrival> list_;
};

/// How a rank compares with the others, and with its own past.
struct RankScore {
  int rank = 0;
  std::string host = {};
  double score = 1;         ///< 0 to 1: the time of the best rank, or of its own best, as a share of its time
  double last_share = 0;    ///< of the buckets, it arrived last in so many
  double late_seconds = 0;  ///< behind the middle of the others, where it was last
  std::string cause = {};   ///< "compute", "between steps"
  double queued_share = 0;  ///< of the time that it could have worked, it waited so much for a processor
  bool named = false;       ///< it holds the others up
  bool crowded = false;     ///< they wait for it, because it waits for a processor: no fault of its own
  std::int64_t first_named_step = 0;      ///< it was named then for the first time, in this start; 0: never
  int times_judged = 0, times_named = 0;  ///< since then

  /// It was, and at least a third of the time since: a busy machine hides it now and then.
  bool is_straggler() const { return first_named_step > 0 && 3 * times_named >= times_judged; }
};

/// "rank 3 (node2) arrives last in 91 % of buckets, +0.21 ms, compute"
std::string describe(const RankScore& score);
/// "rank 3 (node2) waits for a processor in 42 % of its time, ...": of one that is crowded.
std::string describe_crowded(const RankScore& score);

}  // namespace lockstep
