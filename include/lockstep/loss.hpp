// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loss of a sample: three that Lockstep has, or one of your own, on CPUs.
#pragma once

#include <lockstep/version.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

LOCKSTEP_BEGIN_NAMESPACE

/// Several threads call it at once. Sums over samples are Lockstep's affair, and exact: the function decides about one
/// sample alone.
class OwnLoss {
 public:
  virtual ~OwnLoss() = default;

  /// @param outputs   of the last layer for one sample, [classes]
  /// @param label     the sample's, in [0, classes)
  /// @param gradient  [classes], overwritten with d(loss) / d(outputs); empty in evaluation
  /// @returns the loss. NaN, infinity and numbers beyond a float stop the training with a message that names the step
  virtual double compute(std::span<const float> outputs, std::int32_t label,
                         std::span<float> gradient) const = 0;
  /// Counts towards the accuracy. Here: the largest output is the label's, the first among equals.
  virtual bool is_right(std::span<const float> outputs, std::int32_t label) const;
};

struct Loss {
  enum class Kind { kCrossEntropy, kMeanSquares, kBinaryCrossEntropy };

  Kind kind = Kind::kCrossEntropy;
  double label_smoothing = 0;  ///< the share of a target that goes to all classes alike, in [0, 1)
  std::shared_ptr<const OwnLoss> own = nullptr;  ///< in place of the above
};

/// Takes the softmax of the outputs, which are logits.
inline Loss cross_entropy(double label_smoothing = 0) {
  return {.kind = Loss::Kind::kCrossEntropy, .label_smoothing = label_smoothing};
}
/// The mean over the classes of (output - target)^2, where the target is 1 for the label and else 0.
inline Loss mean_squares() {
  return {.kind = Loss::Kind::kMeanSquares};
}
/// loss(make_shared<MyLoss>())
inline Loss own_loss(std::shared_ptr<const OwnLoss> own) {
  return {.own = std::move(own)};
}

LOCKSTEP_END_NAMESPACE
