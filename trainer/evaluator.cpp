// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/evaluator.hpp"

#include "kernels/exact_sum.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>

namespace lockstep {
namespace {

/// Sums in the form in which they travel: integers, so that their order does not matter.
struct ExactSums {
  std::int64_t samples = 0, loss = 0, correct = 0;

  void add(const LossSums& sums, int count) {
    samples += count;
    loss += std::llrint(sums.loss * kExactScale);
    correct += sums.correct;
  }
};

ExactSums evaluate_grain(Lane& lane, const BatchLoader& loader, std::span<const std::int32_t> indices,
                         int classes, std::span<const float> weights) {
  const int samples = static_cast<int>(indices.size());
  const int columns = lane.columns_for(samples);
  loader.load(*lane.ops, indices, columns, lane.execution.input(), lane.labels.data());
  const float* logits = lane.execution.forward_evaluation(weights.data(), columns);
  LossSums sums;
  lane.ops->softmax_cross_entropy({.batch = columns, .samples = samples, .classes = classes}, logits,
                                  lane.labels.data(), nullptr, &sums);
  ExactSums exact;
  // A loss that no longer fits (diverged weights) counts as the largest that does, rather than as garbage.
  constexpr double kLargestLoss = 1e6;
  if (!(sums.loss < kLargestLoss)) sums.loss = kLargestLoss;
  exact.add(sums, samples);
  return exact;
}

}  // namespace

Evaluation evaluate(Communicator& comm, WorkerPool& pool, std::vector<Lane>& lanes, const Dataset& data,
                    int grain, std::span<const float> weights, const LeaveEvaluation& leave) {
  const BatchLoader loader(data);
  const std::int64_t grains = (data.size() + grain - 1) / grain;
  const std::int64_t last = grains * (comm.rank() + 1) / comm.size();
  std::atomic<std::int64_t> next = grains * comm.rank() / comm.size();
  std::vector<ExactSums> sums(lanes.size());
  std::atomic<bool> left = false;
  pool.run([&](int thread) {
    const auto lane = static_cast<std::size_t>(thread);
    for (std::int64_t g = next++; g < last && !left; g = next++) {
      if (leave()) left = true;
      std::vector<std::int32_t> indices(
          static_cast<std::size_t>(std::min<std::int64_t>(grain, data.size() - g * grain)));
      std::iota(indices.begin(), indices.end(), static_cast<std::int32_t>(g * grain));
      const auto part = evaluate_grain(lanes[lane], loader, indices, data.classes, weights);
      sums[lane].samples += part.samples, sums[lane].loss += part.loss, sums[lane].correct += part.correct;
    }
  });
  std::array<std::int64_t, 4> total{};
  for (const auto& part : sums) total[0] += part.samples, total[1] += part.loss, total[2] += part.correct;
  total[3] = left ? 1 : 0;
  comm.all_reduce(std::span<std::int64_t>(total));
  return {.samples = total[0],
          .correct = total[2],
          .loss = from_exact(total[1]) / static_cast<double>(std::max<std::int64_t>(total[0], 1)),
          .interrupted = total[3] > 0};
}

}  // namespace lockstep
