// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Inputs of a step's loss in device memory: weights of classes, sets of labels, what samples are mixed with.
#pragma once

#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lockstep {

/// A rule whose weights of classes and sets of labels are in device memory while steps are queued.
class DeviceLossRule {
 public:
  /// Waits until they are there. @param rule  for a CPU, of the classes of `data`
  DeviceLossRule(Device& device, Stream& stream, const LossRule& rule, const Dataset& data);

  const LossRule& rule() const { return rule_; }
  /// evaluation_rule() of the same set.
  LossRule of_evaluation() const { return {.kind = rule_.kind, .label_sets = rule_.label_sets}; }

 private:
  DeviceBuffer<float> class_weights_;
  DeviceBuffer<std::uint8_t> label_sets_;
  LossRule rule_;
};

/// Mixes of samples in device memory; none of it where nothing is mixed.
class DeviceMixes {
 public:
  /// @param places   for so many samples of an order
  /// @param columns  of a batch
  /// @param has_next  there is room for the next batch, too
  DeviceMixes(Device& device, const SampleMixer& mixer, std::size_t places, std::size_t columns,
              bool has_next = false);

  /// From the first place on. Queued; they must stay until the stream has come this far.
  void queue(Stream& stream, std::span<const SampleMix> mixes);
  /// Queues labels for the columns of a batch, where no gather of this device writes them; null: nothing to do.
  void queue_labels(Stream& stream, const MixedLabel* labels, int count);

  /// Null where nothing is mixed.
  const SampleMix* mixes() const { return mixes_.data(); }
  MixedLabel* second_labels() const { return second_labels_.data(); }
  /// Those of the next batch, if there is room for one; they take the place of this one's.
  MixedLabel* next_second_labels() const { return next_second_labels_.data(); }
  void take_next() { std::swap(second_labels_, next_second_labels_); }

 private:
  DeviceBuffer<SampleMix> mixes_;
  DeviceBuffer<MixedLabel> second_labels_, next_second_labels_;
};

}  // namespace lockstep
