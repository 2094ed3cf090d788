// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loss and accuracy in the form in which they travel: integers, so that their order does not matter.
#pragma once

#include "comm/communicator.hpp"
#include "comm/gradient_reducer.hpp"
#include "kernels/numerics/wide_sum.hpp"
#include "kernels/ops.hpp"
#include "trainer/engine/evaluator.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep {

class EvaluationSums {
 public:
  /// A grain of so many samples.
  void add(const LossSums& sums, int samples);
  void add(const EvaluationSums& other);
  /// What a GPU counted.
  void add(const StepTotals& totals);
  /// This rank gives up.
  void leave() { numbers_[kLeft] = 1; }

  /// What all ranks' sums come to. Collective.
  Evaluation over_all(Communicator& comm) const;

 private:
  enum Number { kSamples, kCorrect, kNotFinite, kLeft, kLoss, kNumbers = kLoss + kWideLimbs };

  std::array<std::int64_t, kNumbers> numbers_{};
};

}  // namespace lockstep
