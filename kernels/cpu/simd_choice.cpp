// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Asks Highway what the processor has, and LOCKSTEP_SIMD what is wanted.
#include "kernels/cpu/simd_choice.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "kernels/cpu/cpu_ops.hpp"
#include "kernels/cpu/simd_targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd_choice.cpp"
#include "hwy/foreach_target.h"
// Highway asks for this order.
#include "kernels/cpu/multiply_add_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lockstep::cpu::HWY_NAMESPACE {
namespace {

bool fuses() {
  return kFuses;
}

std::int64_t target_in_use() {
  return HWY_TARGET;
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
  const char* shown;  ///< as its maker calls it; Highway calls AVX-512 "AVX3"
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
  if (chosen == std::end(kSimds)) {
    throw UsageError(fmt::format("{}={} is no instruction set: choose one of {}", kSimdVariable,
                                 printable_line(name), fmt::join(simd_choices(), ", ")));
  }
  if (!is_here(*chosen)) {
    throw DeviceError(fmt::format("{}={}: this processor does not have it, but {}", kSimdVariable, name,
                                  fmt::join(simd_choices(), ", ")));
  }
  hwy::DisableTargets(~chosen->target);
}

void choose_simd_as_told() {
  const char* name =
      std::getenv(kSimdVariable);  // NOLINT(concurrency-mt-unsafe): the environment does not change
  choose_simd(name == nullptr ? "" : name);
}

}  // namespace lockstep::cpu
#endif
