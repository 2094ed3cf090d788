// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank's current activity: written by the threads that do it, read by the watchdog.
#pragma once

#include "common/timeline.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// Texts of a fixed size, as they travel and lie in files: each ends with a zero.

/// Overwrites all of `into`, more than four bytes. A text that is too long ends with a word and "...".
void put_text(std::string_view text, std::span<char> into);

/// Up to the zero, or all of it.
template <std::size_t Size>
std::string_view text_in(const std::array<char, Size>& text) {
  return {text.data(), static_cast<std::size_t>(std::find(text.begin(), text.end(), '\0') - text.begin())};
}

enum class Phase : std::uint8_t {
  kStarting,
  kComputing,  ///< forward and backward; on a GPU whole steps
  kReducing,   ///< the rest of the gradients' sums
  kUpdating,
  kEvaluating,
  kChecking,  ///< compares the ranks' states
  kSaving,
  kEnding,
};
inline constexpr int kPhases = 8;
/// "computing"
std::string_view phase_name(Phase phase);

/// For whom a rank waits.
enum class Waiting : std::uint8_t {
  kNo,
  kForSome,  ///< a message, the device, or ranks of its group
  kForAll,   ///< all ranks of the job meet there: a barrier, a sum
};
inline constexpr int kWaitings = 3;

inline constexpr std::size_t kPlaceBytes = 96;  ///< room for all that this program waits for, and some

/// Activity of a rank. A text of fixed size: it also travels, and lies in files.
struct RankStatus {
  std::int64_t step = 0;          ///< in work, counted from 1; 0: none yet
  std::int64_t steps_before = 0;  ///< that earlier starts of the run have taken; does not travel
  Phase phase = Phase::kStarting;
  Waiting waiting = Waiting::kNo;
  std::uint64_t collective = 0;  ///< how many waits for all ranks have begun: the same on all of them
  std::int32_t bucket = -1;      ///< the last that left in this step
  std::int64_t since_ns = 0;     ///< since when nothing of this has changed; Clock of this rank
  std::array<char, kPlaceBytes> place{};  ///< name of the thing waited for (put_text)

  bool waits() const { return waiting != Waiting::kNo; }
  std::string_view place_text() const { return text_in(place); }
};

/// A text that any thread may set and read.
class SharedText {
 public:
  explicit SharedText(std::string text = "") : text_(std::move(text)) {}
  void set(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }
  std::string get() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Writing never waits. Any thread may read; one thread at a time calls
/// begin_step, enter, begin_wait and end_wait, and one at a time bucket_leaves.
class RankActivity {
 public:
  /// @param step  counted from 1
  void begin_step(std::int64_t step);
  void enter(Phase phase);
  void bucket_leaves(std::int32_t bucket);
  /// A wait for all is counted.
  /// @param what  the same on all ranks that wait for all: one with other words is out of step
  void begin_wait(std::string_view what, Waiting whom);
  void end_wait();

  /// Fields may be of two neighbouring moments, but not where nothing has changed for a while.
  RankStatus status() const;

  SharedText device;                            ///< the rank's device in words
  SharedText restart_advice{"start it again"};  ///< advice where a rank was lost
  SharedText verdict_file;                      ///< file of the first verdict on this start; or empty

  /// From now on waits are written down there, too, while it is open. Once, before other threads write.
  void trace_with(std::unique_ptr<Timeline> timeline) { timeline_ = std::move(timeline); }
  /// Null: nothing is traced in this run.
  Timeline* timeline() const { return timeline_.get(); }

 private:
  void touch() { since_ns_.store(clock_ns(), std::memory_order_relaxed); }

  std::atomic<std::int64_t> step_{0}, first_step_{0}, since_ns_{clock_ns()};
  std::atomic<Phase> phase_{Phase::kStarting};
  std::atomic<Waiting> waiting_{Waiting::kNo};
  std::atomic<std::uint64_t> collective_{0};
  std::atomic<std::int32_t> bucket_{-1};
  std::array<std::atomic<std::uint64_t>, kPlaceBytes / sizeof(std::uint64_t)> place_{};
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

}  // namespace lockstep
