// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Multiply-adds between registers, timed.
#include "kernels/cpu/fma_peak.hpp"

#include "common/machine.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fma_peak.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {

/// Does `steps` rounds of independent multiply-adds, enough of them to hide their latency; adds what came out
/// to *sink, so that none can be left out. Returns the number of floating-point operations.
double burn_fma(std::size_t steps, float* sink) {
  constexpr std::size_t kChains = 12;
  const Lanes factor = hn::Set(kTag, 0.999F), term = hn::Set(kTag, *sink);
  Lanes chain[kChains];
  LOCKSTEP_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) chain[i] = hn::Set(kTag, static_cast<float>(i));
  for (std::size_t step = 0; step < steps; ++step) {
    LOCKSTEP_UNROLL
    for (Lanes& link : chain) link = multiply_add(link, factor, term);
  }
  Lanes total = chain[0];
  for (std::size_t i = 1; i < kChains; ++i) total = hn::Add(total, chain[i]);
  *sink += hn::GetLane(total) * 1e-30F;
  return 2.0 * static_cast<double>(kVector * kChains * steps);
}

}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

HWY_EXPORT(burn_fma);

double measure_fma_peak(double seconds) {
  const auto burn = HWY_DYNAMIC_DISPATCH(burn_fma);
  constexpr std::size_t kSliceSteps = 20'000;  // well below a millisecond: some slice is left alone
  float sink = 0.5F;
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto slice_start = Clock::now();
    const double flops = burn(kSliceSteps, &sink);
    best = std::max(best, flops / seconds_since(slice_start));
  } while (seconds_since(start) < seconds);
  volatile float keep = sink;
  static_cast<void>(keep);
  return best;
}

}  // namespace lockstep::cpu
#endif  // HWY_ONCE
