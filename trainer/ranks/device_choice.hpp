// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which device a rank computes on, as the job asks and the machine allows.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/ops.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/gpu.hpp"

#include <functional>
#include <memory>
#include <string>

namespace lockstep {

/// Makes the ops of one thread.
using OpsFactory = std::function<std::unique_ptr<Ops>()>;

struct DeviceChoice {
  std::string kind;          ///< "cpu", "cuda", "emulated"
  std::string description;   ///< "cpu (AVX-512)", "NVIDIA H100 80GB HBM3"
  OpsFactory make_ops;       ///< on a CPU
  std::shared_ptr<Gpu> gpu;  ///< otherwise
  /// How gradients travel, and why so: "NCCL 2.28.9", "mpi through pinned memory: ranks 0 and 1 share a GPU".
  std::string communication;
  std::string backend;  ///< "mpi", "thread", "nccl"
  /// Why `auto` took no GPU on a machine that seems to have one; otherwise empty.
  std::string remark;
};

/// Collective: all ranks choose the same kind of device and the same way to communicate.
/// @param gpus  where "auto" and "cuda" look for one
/// @throws AgreedError (DeviceError's code) if the device or backend that the job names cannot be used here
DeviceChoice choose_device(const ParallelSection& parallel, Communicator& comm,
                           const Platform& gpus = cuda::platform());

}  // namespace lockstep
