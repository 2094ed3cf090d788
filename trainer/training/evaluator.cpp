// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks and threads take grains of the set; sums are of integers, so that no rank's share shows.
#include "trainer/training/evaluator.hpp"

#include "common/buffers.hpp"
#include "common/text_layout.hpp"
#include "data/batch_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  return are_probabilities(loss) ? percent_text(score) + " %" : fmt::format("{:.3f}", score);
}

bool pass_forward(WorkerPool& pool, std::vector<ThreadContext>& threads, const Dataset& data, int grain,
                  std::span<const float> weights, RankShare share, const LeaveEvaluation& leave,
                  UnreadSamples* unread, const std::function<void(int, const EvaluatedGrain&)>& see) {
  UnreadSamples thrown;
  UnreadSamples& kept = unread != nullptr ? *unread : thrown;
  const BatchLoader loader(data);
  const std::int64_t grains = (data.size() + grain - 1) / grain;
  const std::int64_t last = grains * (share.rank + 1) / share.ranks;
  std::atomic<std::int64_t> next = grains * share.rank / share.ranks;
  std::atomic<bool> left = false;
  const auto samples_of = [&](std::int64_t number) {
    std::vector<std::int32_t> samples(
        static_cast<std::size_t>(std::min<std::int64_t>(grain, data.size() - number * grain)));
    std::iota(samples.begin(), samples.end(), static_cast<std::int32_t>(number * grain));
    return samples;
  };
  const auto pass_one = [&](int index, std::int64_t number) {
    ThreadContext& thread = at(threads, index);
    const std::vector<std::int32_t> indices = samples_of(number);
    const int samples = static_cast<int>(indices.size());
    const int columns = thread.columns_for(samples);
    loader.load(indices, columns, thread.execution.input(), thread.labels.data());
    // This thread is likely to take it next.
    if (number + pool.threads() < last) loader.prefetch(samples_of(number + pool.threads()));
    see(index, {.first = number * grain,
                .shape = {.batch = columns, .samples = samples, .classes = data.classes},
                .logits = thread.execution.forward_evaluation(weights.data(), columns),
                .labels = thread.labels.data()});
  };
  pool.run([&](int index) {
    for (std::int64_t g = next++; g < last && !left; g = next++) {
      if (leave()) left = true;
      if (!kept.attempt([&] { pass_one(index, g); })) left = true;
    }
  });
  return left;
}

Evaluation evaluate(Communicator& comm, WorkerPool& pool, std::vector<ThreadContext>& threads,
                    const Dataset& data, const LossRule& loss, int grain, std::span<const float> weights,
                    const LeaveEvaluation& leave, UnreadSamples* unread) {
  std::vector<StepCounters> counted(threads.size());
  const auto count = [&](int thread, const EvaluatedGrain& one) {
    LossShape shape = one.shape;
    shape.rule = loss;
    LossSums sums;
    cpu::loss_and_gradient(shape, one.logits, one.labels, nullptr, &sums);
    auto& values = at(counted, thread).values;
    add_up(values, loss_counters(sums, shape.samples, /*narrow_limit=*/0).values, values);
  };
  const bool left = pass_forward(pool, threads, data, grain, weights,
                                 {.rank = comm.rank(), .ranks = comm.size()}, leave, unread, count);
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
