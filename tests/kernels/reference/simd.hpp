// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs kernels on a SIMD target of the test's choice, to see that bits do not depend on it.
#pragma once

#include "kernels/cpu/simd_choice.hpp"
#include "kernels/cpu/simd_targets.hpp"
// Highway asks for this order.
#include "hwy/highway.h"
#include "hwy/targets.h"
#include "tests/support/prelude.hpp"

namespace lockstep::reference {

/// While it lives, kernels are dispatched to this target.
class ForcedTarget {
 public:
  explicit ForcedTarget(std::int64_t target) { choose(target); }
  ~ForcedTarget() { choose(0); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;

 private:
  static void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

/// The targets that the kernels are compiled for and this machine can run, and the scalar one.
inline std::vector<std::int64_t> all_targets() {
  std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  if ((HWY_TARGETS & HWY_SCALAR) != 0 && targets.back() != HWY_SCALAR) targets.push_back(HWY_SCALAR);
  return targets;
}

/// Targets for tests that would take long on others: the best one and all that have an instruction for
/// multiply-add.
inline std::vector<std::int64_t> fast_targets() {
  std::vector<std::int64_t> targets = all_targets();
  const auto is_slow = [](std::int64_t target) { return target == HWY_SCALAR || target == HWY_SSE4; };
  targets.erase(std::remove_if(targets.begin() + 1, targets.end(), is_slow), targets.end());
  return targets;
}

/// As the program names it to people, where Highway has a word of its own.
inline std::string shown_name(std::int64_t target) {
  return target == HWY_AVX3 ? "AVX-512" : target == HWY_SCALAR ? "portable" : hwy::TargetName(target);
}

/// compute() returns a vector of numbers; it must be the same on each target, bit for bit.
template <class Compute>
void expect_same_bits(const std::vector<std::int64_t>& targets, const Compute& compute) {
  const auto expected = [&] {
    const ForcedTarget forced(targets[0]);
    EXPECT_EQ(cpu::simd_name(), shown_name(targets[0]));
    return compute();
  }();
  if (targets.size() < 2) GTEST_SKIP() << "this machine has one such instruction set only";
  for (std::size_t t = 1; t < targets.size(); ++t) {
    const ForcedTarget forced(targets[t]);
    ASSERT_EQ(cpu::simd_name(), shown_name(targets[t]));
    const auto actual = compute();
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(actual[i])), 0)
          << hwy::TargetName(targets[t]) << " gives " << actual[i] << " and " << hwy::TargetName(targets[0])
          << " gives " << expected[i] << " at index " << i;
    }
  }
}

}  // namespace lockstep::reference
