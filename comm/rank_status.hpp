// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a rank is doing now: written by the threads that do it, read by the watchdog.
#pragma once

#include "common/timeline.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

// When a rank's share of a bucket of gradients was ready, and what that took.

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

// Texts of a fixed size, as they travel and lie in files: each ends with a zero.

/// The longest start of `text` that ends with a word, and "..."; all of it if that fits into `most` bytes.
/// @returns how many bytes of `text` to take; fewer than it has: "..." belongs behind them
inline std::size_t bytes_that_fit(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text.size();
  std::size_t end = most < 3 ? 0 : most - 3;
  const std::size_t space = text.rfind(' ', end);
  if (space != text.npos && space >= end / 2) end = space;
  // Never in the middle of a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return end;
}

/// Overwrites all of `into`. What is too long ends with "...".
template <std::size_t Size>
void put_text(std::string_view text, std::array<char, Size>& into) {
  static_assert(Size > 4);
  into = {};
  const std::size_t taken = bytes_that_fit(text, Size - 1);
  text.substr(0, taken).copy(into.data(), taken);
  if (taken < text.size()) std::string_view("...").copy(into.data() + taken, 3);
}

/// Up to the zero, or all of it.
template <std::size_t Size>
std::string_view text_in(const std::array<char, Size>& text) {
  return {text.data(), static_cast<std::size_t>(std::find(text.begin(), text.end(), '\0') - text.begin())};
}

// How long threads that could compute waited for a processor, as the kernel counts it.

/// Of threads that count themselves: each lies in a queue of its own, and what they do together is late by the longest.
/// Without /proc/thread-self/schedstat the wait is 0. Thread-safe.
class ProcessorWait {
 public:
  ProcessorWait() = default;
  ~ProcessorWait();
  ProcessorWait(const ProcessorWait&) = delete;
  ProcessorWait& operator=(const ProcessorWait&) = delete;

  /// The calling one, as long as this lives. Once for each thread.
  void count_this_thread();

  void start();
  /// Nanoseconds, of the thread that waited longest; 0 before start().
  std::int64_t since_start() const;

 private:
  struct Thread {
    int file = -1;  ///< its schedstat
    std::int64_t at_start = 0;
  };

  mutable std::mutex mutex_;
  std::vector<Thread> threads_;
};

class FlightRecorder;

enum class Phase : std::uint8_t {
  kStarting,
  kComputing,  ///< forward and backward; on a GPU whole steps
  kReducing,   ///< the rest of the gradients' sums
  kUpdating,
  kEvaluating,
  kChecking,  ///< whether the ranks' states are equal
  kSaving,
  kEnding,
};
inline constexpr int kPhases = 8;
/// "computing"
std::string_view phase_name(Phase phase);

/// For whom a rank waits.
enum class Waiting : std::uint8_t {
  kNo,
  kForSome,  ///< a message, its own device, or ranks of its group
  kForAll,   ///< all ranks of the job meet there: a barrier, a sum
};
inline constexpr int kWaitings = 3;

inline constexpr std::size_t kPlaceBytes = 96;  ///< room for all that this program waits for, and some

/// Where a rank stands. A text of fixed size: it also travels, and lies in files.
struct RankStatus {
  std::int64_t step = 0;  ///< in work, counted from 1; 0: none yet
  Phase phase = Phase::kStarting;
  Waiting waiting = Waiting::kNo;
  std::uint64_t collective = 0;  ///< how many waits for all ranks have begun: the same on all of them
  std::int32_t bucket = -1;      ///< the last that left in this step
  std::int64_t since_ns = 0;     ///< since when nothing of this has changed; Clock of this rank
  std::array<char, kPlaceBytes> place{};  ///< what is waited for (put_text)

  bool waits() const { return waiting != Waiting::kNo; }
  std::string_view place_text() const { return text_in(place); }
};

/// Writing never waits. Any thread may read; one thread at a time calls
/// begin_step, enter, begin_wait and end_wait, and one at a time bucket_leaves.
class RankActivity {
 public:
  RankActivity();
  ~RankActivity();
  RankActivity(const RankActivity&) = delete;
  RankActivity& operator=(const RankActivity&) = delete;

  /// @param step  counted from 1
  void begin_step(std::int64_t step);
  void enter(Phase phase);
  void bucket_leaves(std::int32_t bucket);
  /// How many grains of the step are this rank's.
  void share_of_step(std::int32_t grains);
  /// A wait for all is counted.
  /// @param what  for people: nothing is decided by it
  void begin_wait(std::string_view what, Waiting whom);
  void end_wait();
  /// The calling thread computes for this rank: time in which it waits for a processor is no work. Before the first
  /// step.
  void computes_here() { processor_wait_.count_this_thread(); }

  /// Fields may be of two neighbouring moments, but not where nothing has changed for a while.
  RankStatus status() const;

  /// When the buckets left, since they were fetched last.
  ArrivalLog& arrivals() { return arrivals_; }

  /// What the rank computes on, for people. Once, before it matters.
  void set_device(const std::string& device);
  std::string device() const;

  /// What to do when a rank was lost, for people. Once, before it matters; until then to start again.
  void set_restart_advice(const std::string& advice);
  std::string restart_advice() const;

  /// From now on all of it is written down there, too. Once, before other threads write.
  /// @param directory  where the recorder writes
  void record_with(std::unique_ptr<FlightRecorder> recorder, const std::string& directory);
  /// Null: nothing is written down.
  FlightRecorder* recorder() const { return recorder_.load(std::memory_order_acquire); }
  std::string flight_directory() const;

  /// From now on waits are written down there, too, while it is open. Once, before other threads write.
  void trace_with(std::unique_ptr<Timeline> timeline) { timeline_ = std::move(timeline); }
  /// Null: nothing is traced in this run.
  Timeline* timeline() const { return timeline_.get(); }

 private:
  std::int64_t touch();
  void note_arrival(std::int64_t now);

  std::atomic<std::int64_t> step_{0}, since_ns_{0};
  std::atomic<Phase> phase_{Phase::kStarting};
  std::atomic<Waiting> waiting_{Waiting::kNo};
  std::atomic<std::uint64_t> collective_{0};
  std::atomic<std::int32_t> bucket_{-1};
  std::array<std::atomic<std::uint64_t>, kPlaceBytes / 8> place_{};
  std::atomic<std::int32_t> grains_{0};
  std::atomic<std::int64_t> work_began_ns_{0}, step_began_ns_{0}, queued_between_ns_{0};
  ProcessorWait processor_wait_;  ///< since work_began_ns_
  ArrivalLog arrivals_;
  mutable std::mutex texts_mutex_;
  std::string device_, flight_directory_, restart_advice_ = "start it again";
  std::unique_ptr<FlightRecorder> owned_recorder_;
  std::atomic<FlightRecorder*> recorder_{nullptr};
  std::unique_ptr<Timeline> timeline_;
  TimeSlice wait_;  ///< under way; begin_ns 0: none that is traced
};

/// Is in a phase for as long as it lives, and then in the one before it again.
class InPhase {
 public:
  InPhase(RankActivity& activity, Phase phase) : activity_(activity), before_(activity.status().phase) {
    activity_.enter(phase);
  }
  ~InPhase() { activity_.enter(before_); }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  RankActivity& activity_;
  Phase before_;
};

/// Nanoseconds of Clock.
std::int64_t clock_ns();

}  // namespace lockstep
