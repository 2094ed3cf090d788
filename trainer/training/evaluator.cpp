// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks and threads take grains of the set; sums are of integers, so that no rank's share shows.
#include "trainer/training/evaluator.hpp"

#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

namespace lockstep {

const char* name_of_scores(LossKind loss) {
  if (loss == LossKind::kCrossEntropy) return "softmax";
  return loss == LossKind::kBinaryCrossEntropy ? "sigmoid" : "outputs";
}

bool are_probabilities(LossKind loss) {
  return loss != LossKind::kMeanSquares;
}

void score_classes(LossKind loss, const LossShape& shape, const float* logits, float* scores) {
  if (loss == LossKind::kCrossEntropy) cpu::log_softmax(shape, logits, scores);
  const auto score_of = [&](std::size_t i) {
    if (loss == LossKind::kCrossEntropy) return std::exp(scores[i]);
    if (loss == LossKind::kMeanSquares) return logits[i];
    return std::isfinite(logits[i]) ? 1 / (1 + std::exp(-logits[i])) : NAN;
  };
  for (int c = 0; c < shape.classes; ++c) {
    const std::size_t row = static_cast<std::size_t>(c) * static_cast<std::size_t>(shape.batch);
    for (int s = 0; s < shape.samples; ++s)
      scores[row + static_cast<std::size_t>(s)] = score_of(row + static_cast<std::size_t>(s));
  }
}

std::string score_text(LossKind loss, double score) {
  return are_probabilities(loss) ? fmt::format("{:.2f} %", 100 * score) : fmt::format("{:.3f}", score);
}

namespace {

StepCounters evaluate_grain(ThreadContext& thread, const BatchLoader& loader, const EvaluatedGrains& grains,
                            std::int64_t number, const LossShape& loss, std::span<const float> weights) {
  const std::vector<std::int32_t> indices = grains.samples(number);
  const int samples = static_cast<int>(indices.size());
  const int columns = thread.columns_for(samples);
  loader.load(indices, columns, thread.execution.input(), thread.labels.data());
  grains.prefetch_behind(number, loader);
  const float* logits = thread.execution.forward_evaluation(weights.data(), columns);
  LossSums sums;
  cpu::loss_and_gradient({.batch = columns, .samples = samples, .classes = loss.classes, .rule = loss.rule},
                         logits, thread.labels.data(), nullptr, &sums);
  return loss_counters(sums, samples, /*narrow_limit=*/0);
}

}  // namespace

EvaluatedGrains::EvaluatedGrains(std::int64_t samples, int grain, int rank, int ranks, int threads)
    : all_samples_(samples), grain_(grain), threads_(threads) {
  const std::int64_t grains = (samples + grain - 1) / grain;
  first_ = grains * rank / ranks;
  last_ = grains * (rank + 1) / ranks;
}

std::vector<std::int32_t> EvaluatedGrains::samples(std::int64_t number) const {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(size(number)));
  std::iota(indices.begin(), indices.end(), static_cast<std::int32_t>(number * grain_));
  return indices;
}

void EvaluatedGrains::prefetch_behind(std::int64_t number, const BatchLoader& loader) const {
  if (number + threads_ < last_) loader.prefetch(samples(number + threads_));
}

Evaluation evaluate(Communicator& comm, WorkerPool& pool, std::vector<ThreadContext>& threads,
                    const Dataset& data, const LossRule& loss, int grain, std::span<const float> weights,
                    const LeaveEvaluation& leave, UnreadSamples* unread) {
  UnreadSamples thrown;
  UnreadSamples& kept = unread != nullptr ? *unread : thrown;
  const BatchLoader loader(data);
  const EvaluatedGrains grains(data.size(), grain, comm.rank(), comm.size(), pool.threads());
  const LossShape shape{.classes = data.classes, .rule = loss};
  std::atomic<std::int64_t> next = grains.first();
  std::vector<StepCounters> counted(threads.size());
  std::atomic<bool> left = false;
  pool.run([&](int index) {
    const auto thread = static_cast<std::size_t>(index);
    for (std::int64_t g = next++; g < grains.last() && !left; g = next++) {
      if (leave()) left = true;
      const auto evaluate_one = [&] {
        const StepCounters counters = evaluate_grain(threads[thread], loader, grains, g, shape, weights);
        add_up(counted[thread].values, counters.values, counted[thread].values);
      };
      if (!kept.attempt(evaluate_one)) left = true;
    }
  });
  StepCounters all;
  for (const StepCounters& part : counted) add_up(all.values, part.values, all.values);
  all.values[kStopRequests] = left ? 1 : 0;
  return evaluation_over_all(comm, all);
}

Evaluation evaluation_over_all(Communicator& comm, StepCounters counters) {
  comm.all_reduce(std::span<std::int64_t>(counters.values));
  const StepTotals all = counters.totals();
  const double mean = all.loss() / static_cast<double>(std::max<std::int64_t>(all.samples, 1));
  return {.samples = all.samples,
          .correct = all.correct,
          .not_finite = all.refused,
          .loss = all.refused == 0 ? mean : std::numeric_limits<double>::quiet_NaN(),
          .interrupted = all.stop_requested};
}

std::string describe_loss(const Evaluation& evaluation) {
  if (evaluation.not_finite == 0) return format_loss(evaluation.loss);
  return fmt::format("not finite ({} of {})", with_thousands(evaluation.not_finite),
                     counted(evaluation.samples, "sample"));
}

}  // namespace lockstep
