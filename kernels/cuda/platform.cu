// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The GPUs of this machine as a Platform: found, tried, made.
#include "common/error.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/native_ops.hpp"
#include "kernels/cuda/properties.hpp"
#include "kernels/device_messages.hpp"

namespace lockstep::LOCKSTEP_GPU {

namespace {

class GpuPlatform final : public Platform {
 public:
  std::vector<DeviceProperties> devices() const override {
    std::vector<DeviceProperties> devices;
    for (int index = 0, count = device_count(); index < count; ++index)
      devices.push_back(read_properties(index));
    return devices;
  }
  std::vector<std::vector<PeerLink>> links() const override { return read_links(); }
  std::string versions() const override { return read_versions(); }

  std::unique_ptr<Device> make_device(int index) const override {
    if (index < 0 || index >= device_count()) throw DeviceError(no_such_device_message(index, devices()));
    return LOCKSTEP_GPU::make_device(read_properties(index));
  }
  std::unique_ptr<DeviceOps> make_ops(Device& device) const override { return make_native_ops(device); }
};

}  // namespace

const Platform& platform() {
  static const GpuPlatform platform;
  return platform;
}

}  // namespace lockstep::LOCKSTEP_GPU
