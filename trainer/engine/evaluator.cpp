// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks and threads take grains of the set; sums are of integers, so that no rank's share shows.
#include "trainer/engine/evaluator.hpp"

#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <span>

namespace lockstep {

namespace {

LossSums evaluate_grain(ThreadContext& thread, const BatchLoader& loader,
                        std::span<const std::int32_t> indices, int classes, std::span<const float> weights) {
  const int samples = static_cast<int>(indices.size());
  const int columns = thread.columns_for(samples);
  loader.load(indices, columns, thread.execution.input(), thread.labels.data());
  const float* logits = thread.execution.forward_evaluation(weights.data(), columns);
  LossSums sums;
  cpu::softmax_cross_entropy({.batch = columns, .samples = samples, .classes = classes}, logits,
                             thread.labels.data(), nullptr, &sums);
  return sums;
}

}  // namespace

Evaluation evaluate(Communicator& comm, WorkerPool& pool, std::vector<ThreadContext>& threads,
                    const Dataset& data, int grain, std::span<const float> weights,
                    const LeaveEvaluation& leave) {
  const BatchLoader loader(data);
  const std::int64_t grains = (data.size() + grain - 1) / grain;
  const std::int64_t last = grains * (comm.rank() + 1) / comm.size();
  std::atomic<std::int64_t> next = grains * comm.rank() / comm.size();
  std::vector<EvaluationSums> sums(threads.size());
  std::atomic<bool> left = false;
  pool.run([&](int index) {
    const auto thread = static_cast<std::size_t>(index);
    for (std::int64_t g = next++; g < last && !left; g = next++) {
      if (leave()) left = true;
      std::vector<std::int32_t> indices(
          static_cast<std::size_t>(std::min<std::int64_t>(grain, data.size() - g * grain)));
      std::iota(indices.begin(), indices.end(), static_cast<std::int32_t>(g * grain));
      sums[thread].add(evaluate_grain(threads[thread], loader, indices, data.classes, weights),
                       static_cast<int>(indices.size()));
    }
  });
  EvaluationSums total;
  for (const EvaluationSums& part : sums) total.add(part);
  if (left) total.leave();
  return total.over_all(comm);
}

Evaluation make_evaluation(std::int64_t samples, std::int64_t correct, std::int64_t not_finite,
                           double loss_sum) {
  const double mean = loss_sum / static_cast<double>(std::max<std::int64_t>(samples, 1));
  return {.samples = samples,
          .correct = correct,
          .not_finite = not_finite,
          .loss = not_finite == 0 ? mean : std::numeric_limits<double>::quiet_NaN()};
}

std::string describe_loss(const Evaluation& evaluation) {
  if (evaluation.not_finite == 0) return format_loss(evaluation.loss);
  return fmt::format("not finite ({} of {})", with_thousands(evaluation.not_finite),
                     counted(evaluation.samples, "sample"));
}

// Sums of grains, of threads and of ranks.

void EvaluationSums::add(const LossSums& sums, int samples) {
  numbers_[kSampleCount] += samples;
  numbers_[kCorrectCount] += sums.correct;
  numbers_[kNotFinite] += sums.not_finite;
  const WideSum term = wide_term(sums.loss * kLossScale);
  for (std::size_t i = 0; i < term.limbs.size(); ++i) numbers_[kLimbs + i] += term.limbs[i];
}

void EvaluationSums::add(const EvaluationSums& other) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] += other.numbers_[i];
}

void EvaluationSums::add(const StepTotals& totals) {
  numbers_[kSampleCount] += totals.samples;
  numbers_[kCorrectCount] += totals.correct;
  numbers_[kNotFinite] += totals.refused;
  for (std::size_t i = 0; i < totals.loss_units.limbs.size(); ++i)
    numbers_[kLimbs + i] += totals.loss_units.limbs[i];
}

Evaluation EvaluationSums::over_all(Communicator& comm) const {
  std::array<std::int64_t, kNumbers> total = numbers_;
  comm.all_reduce(std::span<std::int64_t>(total));
  WideSum loss;
  std::copy_n(total.begin() + kLimbs, kWideLimbs, loss.limbs.begin());
  Evaluation evaluation = make_evaluation(total[kSampleCount], total[kCorrectCount], total[kNotFinite],
                                          loss.value() / kLossScale);
  evaluation.interrupted = total[kLeft] > 0;
  return evaluation;
}

}  // namespace lockstep
