// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a rank is doing now: written by the threads that do it, read by the watchdog.
#pragma once

#include "comm/activity/arrival.hpp"
#include "comm/activity/fixed_text.hpp"
#include "comm/activity/processor_wait.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace lockstep {

class FlightRecorder;

enum class Phase : std::uint8_t {
  kStarting,
  kComputing,  ///< forward and backward; on a GPU whole steps
  kReducing,   ///< the rest of the gradients' sums
  kUpdating,
  kEvaluating,
  kChecking,  ///< whether the ranks' weights are equal
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
struct Whereabouts {
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
  /// The calling thread computes for this rank: time in which it waits for a processor is no work. Before the first step.
  void computes_here() { processor_wait_.count_this_thread(); }

  /// Fields may be of two neighbouring moments, but not where nothing has changed for a while.
  Whereabouts whereabouts() const;

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
};

/// Is in a phase for as long as it lives, and then in the one before it again.
class InPhase {
 public:
  InPhase(RankActivity& activity, Phase phase) : activity_(activity), before_(activity.whereabouts().phase) {
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
