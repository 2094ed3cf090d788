// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stands in for kernels/cuda in a build without CUDA.
#include "common/error.hpp"
#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"

#include <unistd.h>

#include <string>

namespace lockstep::cuda {

namespace {

class NoCudaPlatform final : public Platform {
 public:
  std::vector<DeviceProperties> devices() const override { refuse(); }
  std::vector<std::vector<PeerLink>> links() const override { refuse(); }
  std::string versions() const override { refuse(); }
  std::unique_ptr<Device> make_device(int /*index*/) const override { refuse(); }
  std::unique_ptr<DeviceOps> make_ops(Device& /*device*/) const override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    const std::string text = advice(
        "this build has no GPU kernels: it was made without the CUDA toolkit; install the CUDA toolkit "
        "and build again (launch/build), or use {device}cpu or auto");
    // With a driver, a user may wonder why the GPUs of this machine are idle.
    if (access("/dev/nvidiactl", F_OK) == 0) throw DeviceError(text);
    throw NoGpuError(text);
  }
};

}  // namespace

const Platform& platform() {
  static const NoCudaPlatform platform;
  return platform;
}

}  // namespace lockstep::cuda
