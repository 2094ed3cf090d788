// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Counters as int64 elements, and as digits that fp32 sums keep exact.
#include "comm/step_counters.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr unsigned kDigitBits = 12;
constexpr std::uint64_t kDigitMask = (std::uint64_t{1} << kDigitBits) - 1;

}  // namespace

double StepTotals::loss() const {
  return loss_units.value() / kLossScale;
}

StepTotals StepCounters::totals() const {
  StepTotals totals{.samples = values[kSamples],
                    .loss_units = {},
                    .correct = values[kCorrect],
                    .stop_requested = values[kStopRequests] != 0,
                    .refused = values[kRefused]};
  std::copy_n(values.begin() + kLoss, kWideLimbs, totals.loss_units.limbs.begin());
  totals.loss_units.carry();
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

void encode(const StepCounters& counters, std::span<std::int64_t> elements) {
  std::copy(counters.values.begin(), counters.values.end(), elements.begin());
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
    for (std::size_t digit = 0; digit < kDigits; ++digit, rest >>= kDigitBits) {
      elements[i++] = static_cast<float>(rest & kDigitMask);
    }
  }
}

StepCounters decode(std::span<const float> elements) {
  // Modulo 2^64 a negative number and the carries out of the digits come out right by themselves.
  StepCounters counters;
  for (std::size_t v = 0; v < counters.values.size(); ++v) {
    std::uint64_t value = 0;
    for (std::size_t digit = kDigits; digit-- > 0;) {
      value = (value << kDigitBits) + static_cast<std::uint64_t>(elements[v * kDigits + digit]);
    }
    counters.values[v] = static_cast<std::int64_t>(value);
  }
  return counters;
}

}  // namespace lockstep
