// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loss that a job's steps make small: its kind, smoothed targets, weights of classes, and mixed labels.
#pragma once

#include "data/dataset.hpp"
#include "data/mixing.hpp"
#include "data/sampler.hpp"
#include "kernels/device.hpp"
#include "kernels/shapes.hpp"
#include "trainer/config/job.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Weights as they are without smoothing and weights of classes: by it evaluations judge a job's weights.
inline LossRule evaluation_rule(LossKind kind) {
  return {.kind = kind};
}

class TrainingLoss {
 public:
  /// @throws ConfigError  the weights are not one for each class, or balanced ones are asked for of a set that lacks
  ///                      samples of a class
  TrainingLoss(const Job& job, const Dataset& train);

  bool has_class_weights() const { return !weights_.empty(); }
  std::span<const float> class_weights() const { return weights_; }

  /// For a CPU. Borrows the weights.
  /// @param scale  as scale_of() says
  LossRule rule(float scale) const;
  /// For a GPU, where StepState has the scale. @param weights  class_weights(), in its memory
  LossRule device_rule(const float* weights) const;

  /// What makes the sum over the samples of a batch, divided by their number, the mean by weight: their number over the
  /// sum of their weights; 0 where all of them weigh 0. Without weights 1, and where labels are mixed: then the mean is
  /// that by number, as PyTorch's of targets that are probabilities.
  float scale_of(std::span<const std::int32_t> samples) const;
  /// Of a global batch: every rank knows its order and all labels. The sampler's epoch is set.
  float scale_of(const DistributedSampler& sampler, std::int64_t step_in_epoch) const;

  /// For people; "" for the plain cross-entropy.
  std::string describe() const;

 private:
  LossRule rule_;
  double smoothing_;
  bool balanced_, mixed_;
  std::vector<float> weights_;  ///< of classes; empty: none are given
  std::span<const std::int32_t> labels_;
};

/// Weights of classes in device memory, for as long as steps are queued.
class DeviceClassWeights {
 public:
  /// Waits until they are there.
  DeviceClassWeights(Device& device, Stream& stream, const TrainingLoss& loss);

  const float* data() const { return memory_.data(); }

 private:
  DeviceBuffer<float> memory_;
};

/// What samples are mixed with, in device memory; none of it where nothing is mixed.
class DeviceMixes {
 public:
  /// @param places   for so many samples of an order
  /// @param columns  of a batch
  DeviceMixes(Device& device, const SampleMixer& mixer, std::size_t places, std::size_t columns);

  /// From the first place on. Queued; they must stay until the stream has come this far.
  void queue(Stream& stream, std::span<const SampleMix> mixes);
  /// Of the columns of a batch, where no gather of this device writes them; null: nothing to do.
  void queue_labels(Stream& stream, const MixedLabel* labels, int count);

  /// Null where nothing is mixed.
  const SampleMix* mixes() const { return mixes_.data(); }
  MixedLabel* second_labels() const { return second_labels_.data(); }

 private:
  DeviceBuffer<SampleMix> mixes_;
  DeviceBuffer<MixedLabel> second_labels_;
};

}  // namespace lockstep
