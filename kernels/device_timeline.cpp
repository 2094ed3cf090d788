// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A device counts from the event that begins a step; the host saw that one end.
#include "kernels/device_timeline.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {

void DeviceTimeline::begin_step(Stream& stream) {
  if (timeline_ == nullptr || !timeline_->is_open()) return;
  if (base_ == nullptr) base_ = device_.make_event(Device::Timing::kOn);
  stream.synchronize();
  stream.record(*base_);
  stream.synchronize();
  base_ns_ = clock_ns();
  used_ = 0;
  in_step_ = true;
}

std::size_t DeviceTimeline::begin(Stream& stream, Work work, std::string_view of) {
  if (used_ == marks_.size()) {
    marks_.push_back({.slice = {},
                      .begin = device_.make_event(Device::Timing::kOn),
                      .end = device_.make_event(Device::Timing::kOn)});
  }
  Mark& mark = marks_[used_];
  const auto named = std::ranges::find(names_, &stream, &std::pair<const Stream*, std::string>::first);
  const std::uint32_t track = timeline_->track(named == names_.end() ? "device" : named->second);
  mark.slice = {.of = of, .track = track, .work = work};
  stream.record(*mark.begin);
  return used_++;
}

std::int64_t DeviceTimeline::nanoseconds(const Event& event) const {
  return base_ns_ + std::llround(event.seconds_since(*base_) * 1e9);
}

void DeviceTimeline::end_step() {
  if (!in_step_) return;
  in_step_ = false;
  for (std::size_t i = 0; i < used_; ++i) {
    TimeSlice slice = marks_[i].slice;
    slice.begin_ns = nanoseconds(*marks_[i].begin);
    slice.end_ns = nanoseconds(*marks_[i].end);
    timeline_->add(slice);
  }
}

}  // namespace lockstep
