// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The GPU of a rank, and how its numbers reach the other ranks.
#pragma once

#include "comm/backend.hpp"
#include "comm/communicator.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "trainer/device/options.hpp"

#include <memory>
#include <optional>

namespace lockstep {

/// In the order in which they were made, so that they go in the reverse order.
struct Gpu {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceOps> ops;
  std::unique_ptr<DeviceAllReduce> all_reduce;  ///< null where one rank trains alone
  /// From GPU to GPU, as DeviceReducer has it. Null: messages go by way of the host.
  std::unique_ptr<DeviceLink> (*make_link)(Communicator& comm, Device& device, LinkEnd end) = nullptr;
};

/// On what a strategy trains.
struct DeviceSetup {
  std::shared_ptr<Gpu> gpu = {};  ///< null: CPU cores
  bool streams = false;  ///< the set comes to the ranks' devices step by step, and is not copied there
  GraphUse graph = GraphUse::kOn;
  std::optional<GradientPath> path =
      {};  ///< between replicas of a pipeline's stage; nothing: the best that works
};

}  // namespace lockstep
