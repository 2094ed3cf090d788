// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Times of work on a device's streams. An event before and one after it become a slice of the rank's timeline.
#pragma once

#include "common/timeline.hpp"
#include "kernels/device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// Marks nothing unless the timeline is open when a step begins. Nor what is captured in a graph, whose
/// launches would all write the same events.
class DeviceTimeline {
 public:
  explicit DeviceTimeline(Device& device) : device_(device) {}

  /// Borrows it; null: nothing is ever marked.
  void record_into(Timeline* timeline) { timeline_ = timeline; }
  /// Slices of this stream are on a track of this name.
  void name(const Stream& stream, std::string name) { names_.emplace_back(&stream, std::move(name)); }

  /// Waits for the stream, on which nothing of other ranks may be: that moment is known by both clocks.
  void begin_step(Stream& stream);
  /// All that was marked is done: it becomes slices.
  void end_step();

 private:
  friend class DeviceSpan;
  struct Mark {
    TimeSlice slice;
    std::unique_ptr<Event> begin, end;
  };

  std::size_t begin(Stream& stream, Work work, std::string_view of);
  void end(Stream& stream, std::size_t mark) { stream.record(*marks_[mark].end); }
  std::int64_t nanoseconds(const Event& event) const;

  Device& device_;
  Timeline* timeline_ = nullptr;
  std::vector<std::pair<const Stream*, std::string>> names_;
  bool in_step_ = false;
  std::unique_ptr<Event> base_;
  std::int64_t base_ns_ = 0;  ///< by the host's clock
  std::vector<Mark> marks_;   ///< their events are used again in each step
  std::size_t used_ = 0;
};

/// A slice of the work queued on a stream until the end of the block. Nothing if timeline is null or no step is on.
class DeviceSpan {
 public:
  DeviceSpan(DeviceTimeline* timeline, Stream& stream, Work work, std::string_view of = {})
      : timeline_(timeline != nullptr && timeline->in_step_ ? timeline : nullptr), stream_(stream) {
    if (timeline_ != nullptr) mark_ = timeline_->begin(stream, work, of);
  }
  ~DeviceSpan() {
    if (timeline_ != nullptr) timeline_->end(stream_, mark_);
  }
  DeviceSpan(const DeviceSpan&) = delete;
  DeviceSpan& operator=(const DeviceSpan&) = delete;

 private:
  DeviceTimeline* timeline_;
  Stream& stream_;
  std::size_t mark_ = 0;
};

}  // namespace lockstep
