// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kinds of device: the GPUs of a machine, and the emulator. Lists them, says how they reach each other, and makes them.
#pragma once

#include "kernels/device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep {

class DeviceOps;  // kernels/device_ops.hpp

/// How GPU a of a machine reaches GPU b.
struct PeerLink {
  bool access = false;       ///< a can read b's memory
  int performance_rank = 0;  ///< CUDA's: lower is better
  bool nvlink = false;       ///< atomics work across the link, as they do over NVLink and not over PCIe
};

/// A kind of device: the machine's GPUs, or the emulator.
class Platform {
 public:
  virtual ~Platform() = default;
  /// Visible devices; never empty. @throws DeviceError: one line, why there is none and what to do; a
  /// NoGpuError where nothing is wrong
  virtual std::vector<DeviceProperties> devices() const = 0;
  /// [from][to]; the diagonal means nothing.
  virtual std::vector<std::vector<PeerLink>> links() const = 0;
  /// "driver 13.0, runtime 13.0"
  virtual std::string versions() const = 0;
  /// @throws DeviceError if there is no device `index`, and says how many there are. Or if it cannot run the
  /// kernels of this program: says why and what to do
  virtual std::unique_ptr<Device> make_device(int index) const = 0;
  /// The hand-written kernels. Borrows the device.
  virtual std::unique_ptr<DeviceOps> make_ops(Device& device) const = 0;
};

namespace cuda {
/// The GPUs. In a build without CUDA it throws DeviceError from every call.
const Platform& platform();
}  // namespace cuda
namespace emulated {
/// A GPU in host code, for machines without one: slow, exact, and it finds faults (docs/gpu.md).
const Platform& platform();
}  // namespace emulated

}  // namespace lockstep
