// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The GPU of a rank, and how its numbers reach the other ranks.
#pragma once

#include "comm/device_all_reduce.hpp"
#include "comm/device_link.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/device_ops.hpp"

#include <memory>

namespace lockstep {

/// In the order in which they were made, so that they go in the reverse order.
struct Gpu {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceOps> ops;
  std::unique_ptr<DeviceAllReduce> all_reduce;  ///< null where one rank trains alone
  /// From GPU to GPU, as DeviceReducer has it. Null: messages go by way of the host.
  std::unique_ptr<DeviceLink> (*make_link)(Communicator& comm, Device& device, LinkEnd end) = nullptr;
};

}  // namespace lockstep
