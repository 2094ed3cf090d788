// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The GPU of a rank, and how its gradients reach the other ranks.
#pragma once

#include "comm/device_all_reduce.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/device_ops.hpp"

#include <memory>

namespace lockstep {

/// In the order in which they were made, so that they go in the reverse order.
struct Gpu {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceOps> ops;
  std::unique_ptr<DeviceAllReduce> all_reduce;  ///< null where one rank trains alone
};

}  // namespace lockstep
