// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Asks Highway what the processor has and LOCKSTEP_SIMD what is wanted, and measures how fast that is.
#include "kernels/cpu/simd_choice.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/printable.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd_choice.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/lanes_inl.hpp"
#include "kernels/cpu/multiply_add_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

// Asks Highway what the processor has, and LOCKSTEP_SIMD what is wanted.

bool fuses() {
  return kFuses;
}

std::int64_t target_in_use() {
  return HWY_TARGET;
}

/// Does `steps` rounds of independent multiply-adds, enough of them to hide their latency. Adds the result
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

}  // namespace
}  // namespace lockstep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::cpu {

namespace {

struct Simd {
  std::string_view name;
  std::int64_t target;
  const char* shown;  ///< its maker's name; Highway calls AVX-512 "AVX3"
};

constexpr Simd kSimds[] = {{"avx512", HWY_AVX3, "AVX-512"},
                           {"avx2", HWY_AVX2, "AVX2"},
                           {"sse4", HWY_SSE4, "SSE4"},
                           {"neon", HWY_NEON, "NEON"},
                           {"portable", HWY_SCALAR, "portable"}};

/// Plain code runs everywhere, but is compiled only where no vectors are sure to be there.
bool is_here(const Simd& simd) {
  const std::int64_t here = (hwy::SupportedTargets() | HWY_SCALAR) & HWY_TARGETS;
  return (here & simd.target) != 0;
}

}  // namespace

HWY_EXPORT(fuses);
HWY_EXPORT(target_in_use);

bool simd_fuses() {
  return HWY_DYNAMIC_DISPATCH(fuses)();
}

std::string simd_name() {
  const std::int64_t target = HWY_DYNAMIC_DISPATCH(target_in_use)();
  const auto* const used = std::ranges::find(kSimds, target, &Simd::target);
  return used == std::end(kSimds) ? hwy::TargetName(target) : used->shown;
}

std::vector<std::string> simd_choices() {
  std::vector<std::string> names;
  for (const Simd& simd : kSimds)
    if (is_here(simd)) names.emplace_back(simd.name);
  return names;
}

void choose_simd(std::string_view name) {
  if (name.empty()) return;
  const auto* const chosen = std::ranges::find(kSimds, name, &Simd::name);
  if (chosen == std::end(kSimds))
    throw UsageError(fmt::format("{}={} is not an instruction set: choose one of {}", kSimdVariable,
                                 printable_line(name), fmt::join(simd_choices(), ", ")));
  if (!is_here(*chosen))
    throw DeviceError(fmt::format("{}={}: this processor does not have it, but {}", kSimdVariable, name,
                                  fmt::join(simd_choices(), ", ")));
  hwy::DisableTargets(~chosen->target);
}

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
#endif
