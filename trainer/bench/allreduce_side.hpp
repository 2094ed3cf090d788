// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where `bench allreduce` has its numbers: host memory, or a device of each rank that reaches the others' somehow.
#pragma once

#include "comm/communicator.hpp"
#include "comm/device_collectives.hpp"
#include "kernels/device/device.hpp"
#include "trainer/bench/allreduce_bench.hpp"
#include "trainer/ranks/all_reduce_choice.hpp"

#include <memory>

namespace lockstep::bench {

/// Null: host memory.
const Platform* platform_of(const AllreduceOptions& options, const Platform& gpus);

/// @throws AgreedError  the backend is none of host memory
void require_host_backend(Communicator& comm, const AllreduceOptions& options);

/// In the order in which they were made.
struct DeviceSide {
  std::unique_ptr<Device> device;
  AllReduceSetup setup;  ///< its all-reduce is there also where one rank is alone
};

/// Collective. @throws AgreedError  the device or the backend cannot be used here
std::unique_ptr<DeviceSide> take_device(Communicator& comm, const AllreduceOptions& options,
                                        const Platform& platform);
/// Of the same kind as its all-reduce. Collective.
std::unique_ptr<DeviceCollectives> make_collectives(Communicator& comm, const DeviceSide& side);

}  // namespace lockstep::bench
