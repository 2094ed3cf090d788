// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A relaxed load or store of a float is the plain instruction; what is lost against plain code is SIMD.
#include "trainer/strategies/hogwild/shared_weights.hpp"

#include "common/error.hpp"

#include <atomic>
#include <new>

namespace lockstep {
namespace {

using Atomic = std::atomic_ref<float>;
static_assert(Atomic::is_always_lock_free);
constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

SharedWeights::SharedWeights(Communicator& comm, std::size_t count)
    : memory_(share_memory(comm, count * sizeof(float))),
      weights_(reinterpret_cast<float*>(memory_->bytes().data()), count) {}

void SharedWeights::read(std::span<float> into) const {
  LOCKSTEP_CHECK(into.size() == weights_.size());
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = Atomic(weights_[i]).load(kRelaxed);
}

void SharedWeights::write(std::span<const float> from) {
  LOCKSTEP_CHECK(from.size() == weights_.size());
  for (std::size_t i = 0; i < from.size(); ++i) Atomic(weights_[i]).store(from[i], kRelaxed);
}

std::int64_t SharedWeights::move(std::span<const float> before, std::span<const float> after, Lost lost) {
  LOCKSTEP_CHECK(before.size() == weights_.size() && after.size() == weights_.size());
  if (lost == Lost::kIgnore) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const Atomic weight(weights_[i]);
      weight.store(weight.load(kRelaxed) + (after[i] - before[i]), kRelaxed);
    }
    return 0;
  }
  std::int64_t overwritten = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Atomic weight(weights_[i]);
    float found = weight.load(kRelaxed);
    const float moved = found + (after[i] - before[i]);
    if (weight.compare_exchange_strong(found, moved, kRelaxed)) continue;
    ++overwritten;
    weight.store(moved, kRelaxed);
  }
  return overwritten;
}

}  // namespace lockstep
