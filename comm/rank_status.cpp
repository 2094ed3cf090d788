// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Atomic fields, each by itself.
#include "comm/rank_status.hpp"

#include "common/printable.hpp"

#include <bit>

namespace lockstep {

using std::memory_order_relaxed;
using PlaceWords = std::array<std::uint64_t, kPlaceBytes / 8>;

std::string_view phase_name(Phase phase) {
  static constexpr std::array<std::string_view, kPhases> kNames = {
      "starting", "computing", "reducing gradients", "updating weights", "evaluating", "checking replicas",
      "saving",   "ending"};
  return kNames[static_cast<std::size_t>(phase)];
}

void put_text(std::string_view text, std::span<char> into) {
  std::ranges::fill(into, '\0');
  std::size_t end = into.size() - 1;
  if (text.size() > end) {
    end -= 3;
    const std::size_t space = text.rfind(' ', end);
    if (space != text.npos && space >= end / 2) end = space;
    end = begin_of_character(text, end);
    std::string_view("...").copy(into.data() + end, 3);
  }
  text.copy(into.data(), end);
}

void RankActivity::begin_step(std::int64_t step) {
  step_.store(step, memory_order_relaxed);
  if (first_step_.load(memory_order_relaxed) == 0) first_step_.store(step, memory_order_relaxed);
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
  const auto words = std::bit_cast<PlaceWords>(text);
  for (std::size_t i = 0; i < words.size(); ++i) place_[i].store(words[i], memory_order_relaxed);
  if (whom == Waiting::kForAll) collective_.fetch_add(1, memory_order_relaxed);
  waiting_.store(whom, memory_order_relaxed);
  touch();
  if (timeline_ != nullptr && timeline_->is_open()) {
    wait_ = {.of = timeline_->keep(what), .track = timeline_->thread_track(), .work = Work::kWaiting};
    wait_.begin_ns = clock_ns();
  }
}

void RankActivity::end_wait() {
  waiting_.store(Waiting::kNo, memory_order_relaxed);
  touch();
  if (wait_.begin_ns != 0) {
    wait_.end_ns = clock_ns();
    timeline_->add(wait_);
    wait_ = {};
  }
}

RankStatus RankActivity::status() const {
  RankStatus now;
  now.step = step_.load(memory_order_relaxed);
  now.steps_before = std::max<std::int64_t>(first_step_.load(memory_order_relaxed), 1) - 1;
  now.phase = phase_.load(memory_order_relaxed);
  now.waiting = waiting_.load(memory_order_relaxed);
  now.collective = collective_.load(memory_order_relaxed);
  now.bucket = bucket_.load(memory_order_relaxed);
  now.since_ns = since_ns_.load(memory_order_relaxed);
  PlaceWords words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = place_[i].load(memory_order_relaxed);
  now.place = std::bit_cast<std::array<char, kPlaceBytes>>(words);
  return now;
}

}  // namespace lockstep
