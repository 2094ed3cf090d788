// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Choice of each rank's device, and of the path of its gradients to the other ranks.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/platform.hpp"
#include "trainer/config/job.hpp"
#include "trainer/device/gpu.hpp"

#include <memory>
#include <string>

namespace lockstep {

struct DeviceChoice {
  std::string kind;               ///< "cpu", "cuda", "emulated"
  std::string description;        ///< "cpu (AVX-512)", "NVIDIA H100 80GB HBM3"
  std::shared_ptr<Gpu> gpu = {};  ///< otherwise
  /// How gradients travel, and why so: "NCCL 2.28.9", "mpi through pinned memory: ranks 0 and 1 share a GPU".
  std::string communication = {};
  std::string backend;  ///< "mpi", "thread", "nccl"; "none": one rank alone
  /// Why `auto` took no GPU on a machine that seems to have one; otherwise empty.
  std::string remark = {};
};

/// Collective: all ranks choose the same kind of device and the same way to communicate. From then on a verdict on this
/// rank names its device.
/// @param gpus  where "auto" and "cuda" look for one
/// @throws AgreedError (DeviceError's code) if the device or backend that the job names cannot be used here
DeviceChoice choose_device(const ParallelSection& parallel, Communicator& comm,
                           const Platform& gpus = cuda::platform());

/// The device for such a network: `auto` is a CPU where no GPU has its precision.
/// @throws ConfigError  a device is named that has not
ParallelSection for_precision(ParallelSection parallel, Precision precision);

}  // namespace lockstep
