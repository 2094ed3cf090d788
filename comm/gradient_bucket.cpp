// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/gradient_bucket.hpp"

#include "kernels/runtime/error.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

namespace lockstep {
namespace {

// Two threads that add to the same range follow each other a chunk apart, instead of one after the other.
constexpr std::size_t kChunk = 4096;

constexpr std::uint32_t kExponentMask = 0x7F80'0000U;

}  // namespace

GradientBucket::GradientBucket(const Bucket& range, Determinism determinism, bool carries_counters)
    : range_(range), determinism_(determinism), locks_((range.size + kChunk - 1) / kChunk) {
  if (exact()) {
    exact_ = AlignedBuffer<std::int64_t>(range.size + (carries_counters ? std::size_t{kStepCounters} : 0));
  } else {
    fp32_ = AlignedBuffer<float>(range.size + (carries_counters ? kCounterFloats : 0));
  }
}

void GradientBucket::begin_step(std::int64_t parts) {
  std::ranges::fill(exact_.span(), 0);
  std::ranges::fill(fp32_.span(), 0.0F);
  missing_.store(parts, std::memory_order_release);
}

bool GradientBucket::add(Ops& ops, std::size_t offset, std::size_t size, const float* gradients,
                         float limit) {
  bool fits = true;
  const std::size_t first = offset - range_.offset;
  for (std::size_t at = first; at < first + size;) {
    const std::size_t chunk = at / kChunk;
    const std::size_t count = std::min((chunk + 1) * kChunk, first + size) - at;
    const std::lock_guard lock(locks_[chunk]);
    if (exact()) {
      fits &= ops.accumulate_exact(count, gradients + (at - first), limit, exact_.data() + at);
    } else {
      ops.accumulate(count, gradients + (at - first), fp32_.data() + at);
    }
    at += count;
  }
  return fits;
}

bool GradientBucket::arrived(std::int64_t parts) {
  const std::int64_t before = missing_.fetch_sub(parts, std::memory_order_acq_rel);
  LOCKSTEP_CHECK(before >= parts);
  return before == parts;
}

void GradientBucket::set_counters(const StepCounters& counters) {
  if (exact()) {
    encode(counters, exact_.span().subspan(range_.size));
  } else {
    encode(counters, fp32_.span().subspan(range_.size));
  }
}

StepCounters GradientBucket::counters() const {
  return exact() ? decode(exact_.span().subspan(range_.size)) : decode(fp32_.span().subspan(range_.size));
}

std::unique_ptr<PendingCollective> GradientBucket::start_all_reduce(Communicator& comm) {
  return exact() ? comm.all_reduce_async(exact_.span()) : comm.all_reduce_async(fp32_.span());
}

void GradientBucket::mean(Ops& ops, std::int64_t samples, float* gradient) const {
  if (exact()) {
    ops.mean_from_exact(range_.size, exact_.data(), samples, gradient + range_.offset);
  } else {
    ops.mean(range_.size, fp32_.data(), samples, gradient + range_.offset);
  }
}

bool GradientBucket::finite() const {
  bool finite = true;
  for (const float sum : fp32_.span()) {
    finite &= (std::bit_cast<std::uint32_t>(sum) & kExponentMask) != kExponentMask;
  }
  return finite;
}

}  // namespace lockstep
