// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench kernels` on a GPU: every op of both networks, the native kernels beside the vendor's.
#pragma once

#include <optional>
#include <string>

namespace lockstep::bench {

struct GpuKernelsOptions {
  std::string device = "cuda";  ///< or "emulated", whose times mean nothing
  std::optional<int> batch;     ///< not given: 64 for Net, 256 for LeNet; emulated: 2
  int grain = 64;
  int rounds = 15;     ///< turns of which the median is taken
  std::string filter;  ///< only ops whose name contains this
};

/// Prints what is measured, a table for each network, and which ops are slower than the vendor's. Where there
/// are no vendor kernels, it says why, and their columns are "-".
/// @throws DeviceError if there is no such device
void bench_gpu_kernels(const GpuKernelsOptions& options);

}  // namespace lockstep::bench
