// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Copies to the device, made once or queued step by step.
#include "trainer/device/device_loss.hpp"

#include "common/error.hpp"

namespace lockstep {

DeviceLossRule::DeviceLossRule(Device& device, Stream& stream, const LossRule& rule, const Dataset& data)
    : class_weights_(device, rule.class_weights == nullptr ? 0 : static_cast<std::size_t>(data.classes)),
      label_sets_(upload(device, stream, data.label_sets)),
      rule_(rule) {
  stream.copy_to_device(class_weights_.data(), rule.class_weights, class_weights_.bytes());
  stream.synchronize();
  rule_.class_weights = class_weights_.data();
  rule_.label_sets = label_sets_.data();
}

DeviceMixes::DeviceMixes(Device& device, const SampleMixer& mixer, std::size_t places, std::size_t columns,
                         bool has_next)
    : mixes_(device, mixer.mixes() ? places : 0),
      second_labels_(device, mixer.mixes() ? columns : 0),
      next_second_labels_(device, mixer.mixes() && has_next ? columns : 0) {}

void DeviceMixes::queue(Stream& stream, std::span<const SampleMix> mixes) {
  LOCKSTEP_CHECK(mixes.size() <= mixes_.size());
  if (!mixes.empty()) stream.copy_to_device(mixes_.data(), mixes.data(), mixes.size_bytes());
}

void DeviceMixes::queue_labels(Stream& stream, const MixedLabel* labels, int count) {
  if (labels == nullptr) return;
  LOCKSTEP_CHECK(static_cast<std::size_t>(count) <= second_labels_.size());
  stream.copy_to_device(second_labels_.data(), labels, static_cast<std::size_t>(count) * sizeof(MixedLabel));
}

}  // namespace lockstep
