// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A slice is written down when it ends: one lock, and no memory but the list's.
#include "common/timeline.hpp"

#include <fmt/format.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define LOCKSTEP_HAS_NVTX
#endif

#include <algorithm>
#include <array>
#include <chrono>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, kWorks> kNames = {
    "step",       "attempt", "input",    "forward", "loss",        "backward",   "sums",
    "all-reduce", "waiting", "deciding", "update",  "micro-batch", "evaluation", "checkpoint"};

/// Room that is there from the start: to grow in the middle of a step would show in it.
constexpr std::size_t kFirstSlices = std::size_t{1} << 15;

}  // namespace

std::string_view work_name(Work work) {
  return kNames[static_cast<std::size_t>(work)];
}

std::string describe(const TimeSlice& slice) {
  const std::string_view name = work_name(slice.work);
  if (slice.work == Work::kAllReduce && slice.of.empty())
    return fmt::format("all-reduce of bucket {}", slice.number);
  if (slice.work == Work::kWaiting) return fmt::format("waiting: {}", slice.of);
  if (slice.work == Work::kMicroBatch) return fmt::format("{} of micro-batch {}", slice.of, slice.number);
  if (slice.number != TimeSlice::kNoNumber) return fmt::format("{} {}", name, slice.number);
  return slice.of.empty() ? std::string(name) : fmt::format("{} {}", slice.of, name);
}

void Timeline::open() {
  const std::lock_guard lock(mutex_);
  slices_.clear();
  slices_.reserve(std::min(most_, kFirstSlices));
  lost_ = 0;
  open_.store(true, std::memory_order_relaxed);
}

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::uint32_t Timeline::thread_track() {
  const std::thread::id self = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(tracks_, self, &TimeTrack::thread);
  if (found != tracks_.end()) return static_cast<std::uint32_t>(found - tracks_.begin());
  const auto threads = std::ranges::count_if(tracks_, &TimeTrack::is_thread);
  tracks_.push_back({threads == 0 ? "main thread" : fmt::format("thread {}", threads), self});
  return static_cast<std::uint32_t>(tracks_.size() - 1);
}

std::uint32_t Timeline::track(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(tracks_, name, &TimeTrack::name);
  if (found != tracks_.end()) return static_cast<std::uint32_t>(found - tracks_.begin());
  tracks_.push_back({std::string(name)});
  return static_cast<std::uint32_t>(tracks_.size() - 1);
}

std::string_view Timeline::keep(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto found = texts_.find(text);
  return found != texts_.end() ? *found : *texts_.emplace(text).first;
}

void Timeline::add(const TimeSlice& slice) {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;
  if (slices_.size() == most_) {
    ++lost_;
    return;
  }
  slices_.push_back(slice);
}

void TimeSpan::begin(Work work, std::string_view of, std::int64_t number) {
  slice_ = {.of = of, .number = number, .track = timeline_->thread_track(), .work = work};
#ifdef LOCKSTEP_HAS_NVTX
  nvtxRangePushA(describe(slice_).c_str());
#endif
  slice_.begin_ns = clock_ns();
}

void TimeSpan::end() {
  slice_.end_ns = clock_ns();
#ifdef LOCKSTEP_HAS_NVTX
  nvtxRangePop();
#endif
  timeline_->add(slice_);
}

}  // namespace lockstep
