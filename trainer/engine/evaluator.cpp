// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks and threads take grains of the set; sums are of integers, so that nobody's share shows.
#include "trainer/engine/evaluator.hpp"

#include "common/text/text_layout.hpp"
#include "kernels/numerics/wide_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <numeric>

namespace lockstep {
namespace {

/// Rounds the loss of a grain by 10^-12.
constexpr double kUnitsInNat = 0x1p40;

/// Sums in the form in which they travel: integers, so that their order does not matter.
struct ExactSums {
  enum Number { kSamples, kCorrect, kNotFinite, kLeft, kLoss, kNumbers = kLoss + kWideLimbs };
  std::array<std::int64_t, kNumbers> numbers{};

  void add(const LossSums& sums, int count) {
    numbers[kSamples] += count;
    numbers[kCorrect] += sums.correct;
    numbers[kNotFinite] += sums.not_finite;
    const WideSum term = wide_term(sums.loss * kUnitsInNat);
    for (std::size_t i = 0; i < term.limbs.size(); ++i) numbers[kLoss + i] += term.limbs[i];
  }
  void add(const ExactSums& other) {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += other.numbers[i];
  }
  double loss() const {
    WideSum sum;
    std::copy_n(numbers.begin() + kLoss, kWideLimbs, sum.limbs.begin());
    return sum.value() / kUnitsInNat;
  }
};

LossSums evaluate_grain(ThreadContext& thread, const BatchLoader& loader,
                        std::span<const std::int32_t> indices, int classes, std::span<const float> weights) {
  const int samples = static_cast<int>(indices.size());
  const int columns = thread.columns_for(samples);
  loader.load(*thread.ops, indices, columns, thread.execution.input(), thread.labels.data());
  const float* logits = thread.execution.forward_evaluation(weights.data(), columns);
  LossSums sums;
  thread.ops->softmax_cross_entropy({.batch = columns, .samples = samples, .classes = classes}, logits,
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
  std::vector<ExactSums> sums(threads.size());
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
  ExactSums total;
  for (const ExactSums& part : sums) total.add(part);
  total.numbers[ExactSums::kLeft] = left ? 1 : 0;
  comm.all_reduce(std::span<std::int64_t>(total.numbers));
  Evaluation evaluation =
      make_evaluation(total.numbers[ExactSums::kSamples], total.numbers[ExactSums::kCorrect],
                      total.numbers[ExactSums::kNotFinite], total.loss());
  evaluation.interrupted = total.numbers[ExactSums::kLeft] > 0;
  return evaluation;
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
  return fmt::format("not finite ({} of {} samples)", with_thousands(evaluation.not_finite),
                     with_thousands(evaluation.samples));
}

}  // namespace lockstep
