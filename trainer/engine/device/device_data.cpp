// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceData: the copy to the device, and the gather of a batch.
#include "trainer/engine/device/device_data.hpp"

namespace lockstep {

DeviceData::DeviceData(Device& device, Stream& stream, const Dataset& data)
    : images_(device, data.images.size()),
      features_(device, data.features.size()),
      labels_(device, data.labels.size()),
      scales_(device, data.scales.scale.size() > 1 ? 2 * data.scales.scale.size() : 0),
      view_{.images = images_.data(),
            .features_fp32 = features_.data(),
            .labels = labels_.data(),
            .features = data.shape.features()} {
  normalise(stream, data.scales);
  if (images_.size() > 0) stream.copy_to_device(images_.data(), data.images.data(), images_.bytes());
  if (features_.size() > 0) stream.copy_to_device(features_.data(), data.features.data(), features_.bytes());
  stream.copy_to_device(labels_.data(), data.labels.data(), labels_.bytes());
  stream.synchronize();
}

void DeviceData::normalise(Stream& stream, const ChannelScales& scales) {
  if (scales.scale.empty()) return;
  view_.scale = scales.scale.front();
  view_.shift = scales.shift.front();
  const std::size_t channels = scales.scale.size();
  if (channels == 1) return;
  view_.channels = static_cast<int>(channels);
  view_.channel_scale = scales_.data();
  view_.channel_shift = scales_.data() + channels;
  stream.copy_to_device(scales_.data(), scales.scale.data(), channels * sizeof(float));
  stream.copy_to_device(scales_.data() + channels, scales.shift.data(), channels * sizeof(float));
}

}  // namespace lockstep
