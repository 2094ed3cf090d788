// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loss that a job's steps make small: its kind, smoothed targets, weights of classes, and mixed labels.
#pragma once

#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"
#include "trainer/training/options.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Weights as they are without smoothing and weights of classes: by it evaluations judge a job's weights.
/// Borrows the labels of the set, where samples have several.
inline LossRule evaluation_rule(LossKind kind, const Dataset& data, const HostLoss* own = nullptr) {
  return {.kind = kind, .label_sets = data.has_label_sets() ? data.label_sets.data() : nullptr, .own = own};
}

/// @throws OptionError  samples have several labels, and the loss is of one
void check_loss_of_labels(LossKind loss, const Dataset& data);

/// Version of the sums of steps with this loss (kernels/sum_cuts.hpp).
inline int arithmetic_version(const LossOptions& loss, int classes) {
  const bool pair = classes == 2 && loss.loss == LossKind::kCrossEntropy && loss.label_smoothing > 0;
  return pair ? kSmoothedPairArithmetic : kArithmeticVersion;
}

class TrainingLoss {
 public:
  /// Borrows the set.
  /// @throws OptionError  the weights are not one for each class, or balanced ones are asked for of a set that lacks
  ///                      samples of a class; samples have several labels, and the job is for one
  TrainingLoss(const TrainingOptions& options, const Dataset& train);

  bool has_class_weights() const { return !weights_.empty(); }

  /// For a CPU. Borrows the weights.
  /// @param scale  as scale_of() says; on a GPU StepState has it
  LossRule rule(float scale = 1) const;

  /// Factor that makes the sum over a batch's samples, divided by their number, the mean by weight. It is their
  /// number over the sum of their weights; 0 where all of them weigh 0. Without weights 1, and where labels are
  /// mixed: then the mean is that by number, as PyTorch's of targets that are probabilities.
  float scale_of(std::span<const std::int32_t> samples) const;
  /// Factor of a global batch: every rank knows its order and all labels. The sampler's epoch is set.
  float scale_of(const DistributedSampler& sampler, std::int64_t step_in_epoch) const;

  /// For people; "" for the plain cross-entropy.
  std::string describe() const;

 private:
  LossRule rule_;
  double smoothing_;
  bool balanced_, mixed_;
  std::vector<float> weights_;  ///< by class; empty: none are given
  std::span<const std::int32_t> labels_;
};

}  // namespace lockstep
