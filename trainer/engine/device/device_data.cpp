// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/engine/device/device_data.hpp"

namespace lockstep {

DeviceData::DeviceData(Device& device, Stream& stream, const Dataset& data)
    : images_(device, data.images.size()),
      features_(device, data.features.size()),
      labels_(device, data.labels.size()),
      view_{.images = images_.data(),
            .features_fp32 = features_.data(),
            .labels = labels_.data(),
            .features = data.shape.features(),
            .scale = data.scale,
            .shift = data.shift} {
  if (images_.size() > 0) stream.copy_to_device(images_.data(), data.images.data(), images_.bytes());
  if (features_.size() > 0) stream.copy_to_device(features_.data(), data.features.data(), features_.bytes());
  stream.copy_to_device(labels_.data(), data.labels.data(), labels_.bytes());
  stream.synchronize();
}

}  // namespace lockstep
