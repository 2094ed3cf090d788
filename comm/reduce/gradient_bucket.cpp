// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A bucket, and the counters that travel after the last one.
#include "comm/reduce/gradient_bucket.hpp"

#include "common/error.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace lockstep {

// Threads add under the locks of chunks; the last part to arrive makes the bucket ready.

namespace {

// Two threads that add to the same range follow each other a chunk apart, instead of one after the other.
constexpr std::size_t kChunk = 4096;
// Sums that stay in the first-level cache while two read them.
constexpr std::size_t kNear = 1024;

}  // namespace

GradientBucket::GradientBucket(const Bucket& range, const GradientUnits& units, Determinism determinism,
                               bool carries_counters, bool alone)
    : range_(range), units_(units), determinism_(determinism), locks_((range.size + kChunk - 1) / kChunk) {
  if (exact()) {
    exact_ =
        AlignedBuffer<std::int64_t>(range.size + (carries_counters ? std::size_t{kStepCounters} + 1 : 0));
    if (!alone) reduced_ = AlignedBuffer<std::int64_t>(exact_.size());
  } else {
    fp32_ = AlignedBuffer<float>(range.size + (carries_counters ? kCounterFloats : 0));
  }
}

void GradientBucket::begin_step(std::int64_t parts) {
  std::ranges::fill(exact_.span(), 0);
  std::ranges::fill(fp32_.span(), 0.0F);
  missing_.store(parts, std::memory_order_release);
}

void GradientBucket::for_each_tensor(const auto& f) const {
  for (std::size_t tensor = units_.tensor_at(begin()), at = begin(); at < end(); ++tensor) {
    const std::size_t stop = std::min(units_.end(tensor), end());
    f(tensor, at - begin(), stop - at);
    at = stop;
  }
}

bool GradientBucket::add(std::size_t offset, std::size_t size, const float* gradients) {
  bool fits = true;
  const std::size_t first = offset - range_.offset;
  std::size_t tensor = units_.tensor_at(offset);
  for (std::size_t at = first; at < first + size;) {
    const std::size_t chunk = at / kChunk;
    if (range_.offset + at == units_.end(tensor)) ++tensor;
    const std::size_t stop =
        std::min({(chunk + 1) * kChunk, first + size, units_.end(tensor) - range_.offset});
    const std::lock_guard lock(locks_[chunk]);
    if (exact()) {
      fits &= cpu::accumulate_exact(stop - at, gradients + (at - first), units_.format(tensor),
                                    exact_.data() + at);
    } else {
      cpu::add(stop - at, fp32_.data() + at, gradients + (at - first), fp32_.data() + at);
    }
    at = stop;
  }
  return fits;
}

bool GradientBucket::arrived(std::int64_t parts) {
  const std::int64_t before = missing_.fetch_sub(parts, std::memory_order_acq_rel);
  LOCKSTEP_CHECK(before >= parts);
  return before == parts;
}

void GradientBucket::set_counters(const StepCounters& counters) {
  if (!exact()) return encode(counters, fp32_.span().subspan(range_.size));
  std::ranges::copy(counters.values, exact_.data() + range_.size);
}

StepCounters GradientBucket::counters() const {
  return exact() ? decode(result().subspan(range_.size)) : decode(fp32_.span().subspan(range_.size));
}

std::unique_ptr<PendingCollective> GradientBucket::start(AllReduce& all_reduce) {
  return exact() ? all_reduce.start(exact_.span(), result()) : all_reduce.start(fp32_.span());
}

void GradientBucket::add_fingerprints(std::span<const std::int64_t> sums, SumFingerprints& to) const {
  for_each_tensor([&](std::size_t tensor, std::size_t first, std::size_t size) {
    to[tensor] += cpu::fingerprint(kGradientBuffer, begin() + first, sums.subspan(first, size));
  });
  if (sums.size() > range_.size)
    to.back() += cpu::fingerprint(kGradientBuffer, units_.parameters(),
                                  sums.subspan(range_.size, std::size_t{kStepCounters}));
}

std::span<std::int64_t> GradientBucket::part_of(std::span<std::int64_t> sums, std::size_t tensor) const {
  const std::size_t first = std::max(begin(), units_.begin(tensor)),
                    last = std::min(end(), units_.end(tensor));
  return first < last ? sums.subspan(first - begin(), last - first) : std::span<std::int64_t>();
}

void GradientBucket::mean(std::int64_t samples, float* gradient, const GradientReducer::SeeSums& see) {
  if (!exact()) {
    LOCKSTEP_CHECK(!see);
    cpu::mean(range_.size, fp32_.data(), samples, gradient + range_.offset);
    return;
  }
  for_each_tensor([&](std::size_t tensor, std::size_t first, std::size_t size) {
    for (std::size_t at = first; at < first + size; at += kNear) {
      const std::size_t count = std::min(kNear, first + size - at);
      if (see) see(tensor, begin() + at, result().subspan(at, count));
      cpu::mean_from_exact(count, result().data() + at, units_.format(tensor).scale, samples,
                           gradient + begin() + at);
    }
  });
}

void GradientBucket::show(const GradientReducer::SeeSums& see) {
  LOCKSTEP_CHECK(exact());
  for_each_tensor([&](std::size_t tensor, std::size_t first, std::size_t size) {
    see(tensor, begin() + first, result().subspan(first, size));
  });
}

void GradientBucket::count_not_finite(std::span<TensorRefusals> refusals) const {
  if (exact()) return;
  for_each_tensor([&](std::size_t tensor, std::size_t first, std::size_t size) {
    std::int64_t count = 0;
    for (const float sum : fp32_.span().subspan(first, size)) count += std::isfinite(sum) ? 0 : 1;
    refusals[tensor].not_finite += count;
  });
}

void GradientBucket::find_largest(std::span<double> largest) const {
  LOCKSTEP_CHECK(exact());
  for_each_tensor([&](std::size_t tensor, std::size_t first, std::size_t size) {
    largest[tensor] = std::max(largest[tensor], largest_magnitude(result().subspan(first, size)));
  });
}

// Counters as digits that fp32 sums keep exact.

namespace {

constexpr unsigned kDigitBits = 12;
constexpr std::uint64_t kDigitMask = (std::uint64_t{1} << kDigitBits) - 1;

}  // namespace

StepTotals StepCounters::totals() const {
  StepTotals totals{.samples = values[kSamples],
                    .loss_units = {},
                    .correct = values[kCorrect],
                    .stop_requested = values[kStopRequests] != 0,
                    .refused = values[kRefused]};
  std::copy_n(values.begin() + kLoss, kWideLimbs, totals.loss_units.limbs.begin());
  return totals;
}

StepCounters loss_counters(const LossSums& sums, int samples, double narrow_limit) {
  StepCounters counters;
  const bool adds_up = std::isfinite(sums.loss);
  counters.values[kSamples] = samples;
  counters.values[kCorrect] = sums.correct;
  counters.values[kRefused] = sums.not_finite + (adds_up ? 0 : 1);
  if (!adds_up) return counters;
  if (std::abs(sums.loss) < narrow_limit) {
    counters.values[kLoss] = std::llrint(sums.loss * kLossScale);
    return counters;
  }
  const WideSum term = wide_term(sums.loss * kLossScale);
  std::copy_n(term.limbs.begin(), kWideLimbs, counters.values.begin() + kLoss);
  return counters;
}

StepCounters decode(std::span<const std::int64_t> elements) {
  StepCounters counters;
  std::copy_n(elements.begin(), counters.values.size(), counters.values.begin());
  return counters;
}

void encode(const StepCounters& counters, std::span<float> elements) {
  std::size_t i = 0;
  for (const std::int64_t value : counters.values) {
    auto rest = static_cast<std::uint64_t>(value);
    for (std::size_t digit = 0; digit < kDigits; ++digit, rest >>= kDigitBits)
      elements[i++] = static_cast<float>(rest & kDigitMask);
  }
}

StepCounters decode(std::span<const float> elements) {
  // Modulo 2^64 a negative number and the carries out of the digits come out right by themselves.
  StepCounters counters;
  for (std::size_t v = 0; v < counters.values.size(); ++v) {
    std::uint64_t value = 0;
    for (std::size_t digit = kDigits; digit-- > 0;)
      value = (value << kDigitBits) + static_cast<std::uint64_t>(elements[v * kDigits + digit]);
    counters.values[v] = static_cast<std::int64_t>(value);
  }
  return counters;
}

}  // namespace lockstep
