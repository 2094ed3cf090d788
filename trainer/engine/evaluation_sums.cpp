// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of grains, of threads and of ranks.
#include "trainer/engine/evaluation_sums.hpp"

#include <algorithm>
#include <span>

namespace lockstep {

void EvaluationSums::add(const LossSums& sums, int samples) {
  numbers_[kSamples] += samples;
  numbers_[kCorrect] += sums.correct;
  numbers_[kNotFinite] += sums.not_finite;
  const WideSum term = wide_term(sums.loss * kLossScale);
  for (std::size_t i = 0; i < term.limbs.size(); ++i) numbers_[kLoss + i] += term.limbs[i];
}

void EvaluationSums::add(const EvaluationSums& other) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] += other.numbers_[i];
}

void EvaluationSums::add(const StepTotals& totals) {
  numbers_[kSamples] += totals.samples;
  numbers_[kCorrect] += totals.correct;
  numbers_[kNotFinite] += totals.refused;
  for (std::size_t i = 0; i < totals.loss_units.limbs.size(); ++i)
    numbers_[kLoss + i] += totals.loss_units.limbs[i];
}

Evaluation EvaluationSums::over_all(Communicator& comm) const {
  std::array<std::int64_t, kNumbers> total = numbers_;
  comm.all_reduce(std::span<std::int64_t>(total));
  WideSum loss;
  std::copy_n(total.begin() + kLoss, kWideLimbs, loss.limbs.begin());
  Evaluation evaluation =
      make_evaluation(total[kSamples], total[kCorrect], total[kNotFinite], loss.value() / kLossScale);
  evaluation.interrupted = total[kLeft] > 0;
  return evaluation;
}

}  // namespace lockstep
