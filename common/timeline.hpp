// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Slices of time: the work of a rank's threads, recorded while a window of steps is open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lockstep {

/// Kinds of work in a slice of time.
enum class Work : std::uint8_t {
  kStep,        ///< a whole step; number: the step's, counted from 1
  kAttempt,     ///< to compute its sums; number: counted from 1, more than one where units change
  kInput,       ///< gathering and normalising samples
  kForward,     ///< a layer, or neighbours that run together
  kLoss,        ///< softmax and cross entropy
  kBackward,    ///< a layer, or neighbours that run together
  kSums,        ///< a layer's gradients are rounded and added to their buckets
  kAllReduce,   ///< a bucket, from its first byte to its last; number: the bucket, counted from 0
  kWaiting,     ///< waits for other ranks or for a device; of: its reason
  kDeciding,    ///< decides if the sums may move the weights
  kUpdate,      ///< moves the weights
  kMicroBatch,  ///< a pass of a pipeline's stage; number: the micro-batch, counted from 0
  kEvaluation,
  kCheckpoint,
};
inline constexpr int kWorks = 14;
/// "all-reduce"
std::string_view work_name(Work work);

struct TimeSlice {
  static constexpr std::int64_t kNoNumber = -1;

  std::int64_t begin_ns = 0, end_ns = 0;  ///< by the rank's steady clock
  std::string_view of = {};               ///< "conv1"; borrowed until the slices are read
  std::int64_t number = kNoNumber;
  std::uint32_t track = 0;
  Work work = Work::kStep;

  std::int64_t nanoseconds() const { return end_ns - begin_ns; }
};

/// Nanoseconds of the rank's steady clock.
std::int64_t clock_ns();

/// "conv1 forward", "step 100", "all-reduce of bucket 0"
std::string describe(const TimeSlice& slice);

/// A thread, or something that goes on beside the threads. Slices of one track nest.
struct TimeTrack {
  std::string name;
  std::thread::id thread = {};

  bool is_thread() const { return thread != std::thread::id(); }
};

/// Belongs to a rank. Recording may happen on any thread; the rest is one thread's, between steps.
class Timeline {
 public:
  /// About 60 MB. Later slices are counted, and lost.
  static constexpr std::size_t kMostSlices = std::size_t{1} << 20;

  /// @param most  slices to keep
  explicit Timeline(std::size_t most = kMostSlices) : most_(most) {}

  bool is_open() const { return open_.load(std::memory_order_relaxed); }
  /// Forgets what was written down before.
  void open();
  void close() { open_.store(false, std::memory_order_relaxed); }

  /// Track of the calling thread. The first one to ask is the main thread.
  std::uint32_t thread_track();
  std::uint32_t track(std::string_view name);
  /// A copy of the text, for as long as this lives.
  std::string_view keep(std::string_view text);
  void add(const TimeSlice& slice);

  // When it is closed:
  const std::vector<TimeTrack>& tracks() const { return tracks_; }
  /// In the order in which they ended.
  const std::vector<TimeSlice>& slices() const { return slices_; }
  std::int64_t lost() const { return lost_; }

 private:
  std::size_t most_;
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::vector<TimeTrack> tracks_;
  std::vector<TimeSlice> slices_;
  std::int64_t lost_ = 0;
  std::set<std::string, std::less<>> texts_;
};

/// A slice from here to the end of the block, on the track of this thread. In a build with CUDA an NVTX range, too.
/// With a null or closed timeline nothing.
class TimeSpan {
 public:
  TimeSpan(Timeline* timeline, Work work, std::string_view of = {},
           std::int64_t number = TimeSlice::kNoNumber)
      : timeline_(timeline != nullptr && timeline->is_open() ? timeline : nullptr) {
    if (timeline_ != nullptr) begin(work, of, number);
  }
  ~TimeSpan() {
    if (timeline_ != nullptr) end();
  }
  TimeSpan(const TimeSpan&) = delete;
  TimeSpan& operator=(const TimeSpan&) = delete;

 private:
  void begin(Work work, std::string_view of, std::int64_t number);
  void end();

  Timeline* timeline_;
  TimeSlice slice_;
};

}  // namespace lockstep
