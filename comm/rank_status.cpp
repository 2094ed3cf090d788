// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Atomic fields, each by itself.
#include "comm/rank_status.hpp"

#include "common/machine.hpp"

#include <chrono>
#include <cstring>

namespace lockstep {

using std::memory_order_relaxed;

std::string_view phase_name(Phase phase) {
  static constexpr std::array<std::string_view, kPhases> kNames = {
      "starting", "computing", "reducing gradients", "updating weights", "evaluating", "checking replicas",
      "saving",   "ending"};
  const auto index = static_cast<std::size_t>(phase);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

RankActivity::RankActivity() : since_ns_(clock_ns()) {}
RankActivity::~RankActivity() = default;

void RankActivity::begin_step(std::int64_t step) {
  step_.store(step, memory_order_relaxed);
  bucket_.store(-1, memory_order_relaxed);
  enter(Phase::kComputing);
}

void RankActivity::enter(Phase phase) {
  phase_.store(phase, memory_order_relaxed);
  touch();
}

void RankActivity::bucket_leaves(std::int32_t bucket) {
  bucket_.store(bucket, memory_order_relaxed);
  touch();
}

void RankActivity::begin_wait(std::string_view what, Waiting whom) {
  std::array<char, kPlaceBytes> text{};
  put_text(what, text);
  for (std::size_t i = 0; i < place_.size(); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + 8 * i, 8);
    place_[i].store(word, memory_order_relaxed);
  }
  if (whom == Waiting::kForAll) collective_.fetch_add(1, memory_order_relaxed);
  waiting_.store(whom, memory_order_relaxed);
  touch();
  if (timeline_ != nullptr && timeline_->is_open()) {
    wait_ = {.of = timeline_->keep(what), .track = timeline_->thread_track(), .work = Work::kWaiting};
    wait_.begin_ns = Timeline::now();
  }
}

void RankActivity::end_wait() {
  waiting_.store(Waiting::kNo, memory_order_relaxed);
  touch();
  if (wait_.begin_ns != 0) {
    wait_.end_ns = Timeline::now();
    timeline_->add(wait_);
    wait_ = {};
  }
}

RankStatus RankActivity::status() const {
  RankStatus now;
  now.step = step_.load(memory_order_relaxed);
  now.phase = phase_.load(memory_order_relaxed);
  now.waiting = waiting_.load(memory_order_relaxed);
  now.collective = collective_.load(memory_order_relaxed);
  now.bucket = bucket_.load(memory_order_relaxed);
  now.since_ns = since_ns_.load(memory_order_relaxed);
  for (std::size_t i = 0; i < place_.size(); ++i) {
    const std::uint64_t word = place_[i].load(memory_order_relaxed);
    std::memcpy(now.place.data() + 8 * i, &word, 8);
  }
  now.place.back() = '\0';
  return now;
}

}  // namespace lockstep
