// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A data set in device memory: uint8 images stay uint8, and batches are gathered there.
#pragma once

#include "data/dataset.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/device_ops.hpp"

#include <cstdint>

namespace lockstep {

class DeviceData {
 public:
  /// Copies the whole set; waits until it is there.
  /// @throws DeviceError if the device has no room for it
  DeviceData(Device& device, Stream& stream, const Dataset& data);

  const DeviceDataset& view() const { return view_; }
  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }

 private:
  void normalise(Stream& stream, const ChannelScales& scales);

  DeviceBuffer<std::uint8_t> images_;
  DeviceBuffer<float> features_;
  DeviceBuffer<std::int32_t> labels_;
  DeviceBuffer<float> scales_;  ///< scale and then shift of each channel, where there are several
  DeviceDataset view_;
};

}  // namespace lockstep
