// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One random network trained by the program's own step engine, and judged by the reference.
#pragma once

#include "tests/models/random_networks/random_case.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::test {

/// What all devices must agree on to the bit.
struct TrainedBits {
  std::vector<float> weights;
  std::vector<double> losses;  ///< of each step, and of the evaluation
  std::vector<std::int64_t> correct;
};

struct Comparison {
  std::string mismatch;   ///< empty: everything agrees; otherwise the worst place
  std::int64_t ties = 0;  ///< decisions of relu and max-pool that rounding may turn, in both steps
  double worst = 0;       ///< the largest error as a share of what is allowed
  TrainedBits bits;
};

/// Two steps, the second one of the tail, and an evaluation, on `device` ("cpu" or "emulated"): losses,
/// correct answers, gradients, momentum and weights against the reference. The reference starts each step
/// from the weights that the engine has, so that errors do not add up. Whatever the engine throws is a
/// mismatch, too.
Comparison try_case(const RandomCase& trial, const std::string& device);

/// Empty if two devices came to the same; else the first difference. Where sums are fp32 (determinism off) there is
/// nothing to compare.
std::string difference(const RandomCase& trial, const Comparison& one, const Comparison& other);

/// The same without a judge: whatever the numbers, it must run.
/// @throws what the engine throws
void run_case(const RandomCase& trial, const std::string& device);

}  // namespace lockstep::test
