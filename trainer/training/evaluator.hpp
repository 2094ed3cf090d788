// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loss and accuracy over a whole data set, spread over all ranks, every sample counted exactly once.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "data/dataset.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/sums.hpp"
#include "trainer/training/training_loss.hpp"
#include "trainer/training/worker_pool.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct Evaluation {
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  std::int64_t not_finite = 0;  ///< samples whose loss is NaN or infinite
  double loss = 0;              ///< mean over samples, in nats; NaN if that of some is not finite
  /// A rank was told to leave it before its end. The numbers are of a part of the set, and worth nothing.
  bool interrupted = false;

  double accuracy() const {
    return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples);
  }
};

/// Evaluation of an average of the weights (trainer/training/weight_averages.hpp), by its name.
struct AverageEvaluation {
  std::string name;
  EvaluatedPart part = EvaluatedPart::kTest;
  Evaluation found;
};

/// Evaluations of one state of the weights.
struct Evaluations {
  std::optional<Evaluation> test, validation;
  std::vector<AverageEvaluation> averages = {};

  std::optional<Evaluation>& of(EvaluatedPart part) {
    return part == EvaluatedPart::kTest ? test : validation;
  }
  /// By which a run is judged: its best checkpoint, its patience. One of the two is there.
  const Evaluation& judged() const { return validation ? *validation : *test; }
};

/// Combines all ranks' counters of an evaluation. A request to stop is of a rank that has given up. Collective.
Evaluation evaluation_over_all(Communicator& comm, StepCounters counters);

/// For people: "0.0312", "1.7e+12", or "not finite (3 of 10,000 samples)".
std::string describe_loss(const Evaluation& evaluation);

/// Says if to give an evaluation up, because the run is to stop. May differ between ranks.
using LeaveEvaluation = std::function<bool()>;
inline bool never_leave() {
  return false;
}

/// Grains of the set that this rank looks at.
struct RankShare {
  int rank = 0, ranks = 1;
};

/// One grain that a thread has passed forward. Pointers are valid until the thread passes the next one.
struct EvaluatedGrain {
  std::int64_t first;  ///< place in the set of its first sample
  LossShape shape;     ///< without the rule
  const float* logits;
  const std::int32_t* labels;
};

/// Passes this rank's grains of the set forward and shows each to `see`, on the thread of this index. Grains are cut
/// alike for any share, so that each sample's numbers have the same bits.
/// @returns true if it was left before its end
/// @param leave   asked before each grain, by several threads, whether to give up
/// @param unread  where samples that cannot be read are a reason to leave it, too; null: what reading throws is thrown
bool pass_forward(WorkerPool& pool, std::vector<ThreadContext>& threads, const Dataset& data, int grain,
                  std::span<const float> weights, RankShare share, const LeaveEvaluation& leave,
                  UnreadSamples* unread, const std::function<void(int thread, const EvaluatedGrain&)>& see);

/// Evaluates `weights` on `data`. The set is cut into grains that do not depend on the number of ranks, sums
/// are exact integers, so the result is the same to the last bit on any number of ranks and threads.
/// Collective.
/// @param loss    the evaluation_rule() of the set
/// @param leave   as of pass_forward(), and so is `unread`; all ranks then hear that it was left
Evaluation evaluate(Communicator& comm, WorkerPool& pool, std::vector<ThreadContext>& threads,
                    const Dataset& data, const LossRule& loss, int grain, std::span<const float> weights,
                    const LeaveEvaluation& leave = never_leave, UnreadSamples* unread = nullptr);

// Scores of the classes, computed from outputs by the loss that the network was trained for.

/// "softmax", "sigmoid" or "outputs".
const char* name_of_scores(LossKind loss);
/// True if scores are probabilities: over all classes together (cross_entropy), or of each by itself
/// (binary_cross_entropy).
bool are_probabilities(LossKind loss);
/// Computes the softmax for cross_entropy, the sigmoid for binary_cross_entropy. For mse outputs stay as they are,
/// near 1 for the class and near 0 for the others. NaN where the loss is.
/// @param scores  [classes, batch], of shape.samples columns; may be `logits`
void score_classes(LossKind loss, const LossShape& shape, const float* logits, float* scores);
/// For people: "97.20 %" of a probability, "0.972" of an output.
std::string score_text(LossKind loss, double score);

}  // namespace lockstep
