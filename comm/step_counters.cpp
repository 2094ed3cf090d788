// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/step_counters.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr unsigned kLimbBits = 12;
constexpr std::uint64_t kLimbMask = (std::uint64_t{1} << kLimbBits) - 1;

}  // namespace

StepTotals StepCounters::totals() const {
  return {.samples = values[kSamples],
          .loss = static_cast<double>(values[kLoss]) / kLossScale,
          .correct = values[kCorrect],
          .stop_requested = values[kStopRequests] != 0,
          .not_finite = values[kNotFinite] != 0};
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
    for (std::size_t limb = 0; limb < kLimbs; ++limb, rest >>= kLimbBits) {
      elements[i++] = static_cast<float>(rest & kLimbMask);
    }
  }
}

StepCounters decode(std::span<const float> elements) {
  // Modulo 2^64 a negative number and the carries out of the limbs come out right by themselves.
  StepCounters counters;
  for (std::size_t v = 0; v < counters.values.size(); ++v) {
    std::uint64_t value = 0;
    for (std::size_t limb = kLimbs; limb-- > 0;) {
      value = (value << kLimbBits) + static_cast<std::uint64_t>(elements[v * kLimbs + limb]);
    }
    counters.values[v] = static_cast<std::int64_t>(value);
  }
  return counters;
}

}  // namespace lockstep
