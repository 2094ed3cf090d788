// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Atomic fields, each by itself.
#include "comm/rank_status.hpp"

#include "common/machine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

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

std::int64_t RankActivity::touch() {
  const std::int64_t now = clock_ns();
  since_ns_.store(now, memory_order_relaxed);
  return now;
}

void RankActivity::begin_step(std::int64_t step) {
  step_.store(step, memory_order_relaxed);
  bucket_.store(-1, memory_order_relaxed);
  enter(Phase::kComputing);
  step_began_ns_.store(since_ns_.load(memory_order_relaxed), memory_order_relaxed);
  if (arrivals_.is_open()) queued_between_ns_.store(processor_wait_.since_start(), memory_order_relaxed);
}

void RankActivity::enter(Phase phase) {
  phase_.store(phase, memory_order_relaxed);
  touch();
}

void RankActivity::bucket_leaves(std::int32_t bucket) {
  bucket_.store(bucket, memory_order_relaxed);
  const std::int64_t now = touch();
  if (arrivals_.is_open()) note_arrival(now);
}

void RankActivity::note_arrival(std::int64_t now) {
  const std::int64_t work_began = work_began_ns_.load(memory_order_relaxed);
  const std::int64_t queued = processor_wait_.since_start();
  arrivals_.add({.step = step_.load(memory_order_relaxed),
                 .bucket = bucket_.load(memory_order_relaxed),
                 .grains = grains_.load(memory_order_relaxed),
                 .arrived_ns = now,
                 .work_ns = now - work_began - queued,
                 .between_ns = step_began_ns_.load(memory_order_relaxed) - work_began -
                               queued_between_ns_.load(memory_order_relaxed),
                 .queued_ns = queued});
}

void RankActivity::share_of_step(std::int32_t grains) {
  grains_.store(grains, memory_order_relaxed);
}

std::string describe(const RankScore& score) {
  return fmt::format("rank {} ({}) arrives last in {:.0f} % of buckets, +{:.2f} ms, {}", score.rank,
                     score.host, 100 * score.last_share, 1e3 * score.late_seconds, score.cause);
}

std::string describe_crowded(const RankScore& score) {
  return fmt::format(
      "rank {0} ({1}) waits for a processor in {2:.0f} % of its time, and the others for it, +{3:.2f} ms: "
      "{1} has more to do than processors",
      score.rank, score.host, 100 * score.queued_share, 1e3 * score.late_seconds);
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
  const std::int64_t now = touch();
  work_began_ns_.store(now, memory_order_relaxed);
  if (arrivals_.is_open()) processor_wait_.start();
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

void RankActivity::set_device(const std::string& device) {
  const std::lock_guard lock(texts_mutex_);
  device_ = device;
}

std::string RankActivity::device() const {
  const std::lock_guard lock(texts_mutex_);
  return device_;
}

void RankActivity::set_restart_advice(const std::string& advice) {
  const std::lock_guard lock(texts_mutex_);
  restart_advice_ = advice;
}

std::string RankActivity::restart_advice() const {
  const std::lock_guard lock(texts_mutex_);
  return restart_advice_;
}

void RankActivity::set_verdict_file(const std::string& path) {
  const std::lock_guard lock(texts_mutex_);
  verdict_file_ = path;
}

std::string RankActivity::verdict_file() const {
  const std::lock_guard lock(texts_mutex_);
  return verdict_file_;
}

// /proc/thread-self/schedstat stays open, so that any thread can read it: "RUNNING WAITING SLICES", in nanoseconds.

namespace {

/// The second number; 0 where it cannot be read.
std::int64_t waited_ns(int file) {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  const char *begin = text.data(), *end = begin + size;
  const char* second = std::find(begin, end, ' ');
  std::int64_t waited = 0;
  if (second != end) std::from_chars(second + 1, end, waited);
  return waited;
}

}  // namespace

ProcessorWait::~ProcessorWait() {
  for (const Thread& thread : threads_) ::close(thread.file);
}

void ProcessorWait::count_this_thread() {
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const std::lock_guard lock(mutex_);
  threads_.push_back({file, waited_ns(file)});
}

void ProcessorWait::start() {
  const std::lock_guard lock(mutex_);
  for (Thread& thread : threads_) thread.at_start = waited_ns(thread.file);
}

std::int64_t ProcessorWait::since_start() const {
  const std::lock_guard lock(mutex_);
  std::int64_t longest = 0;
  for (const Thread& thread : threads_) longest = std::max(longest, waited_ns(thread.file) - thread.at_start);
  return longest;
}

}  // namespace lockstep
