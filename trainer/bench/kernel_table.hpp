// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table of `lockstep bench kernels` on a GPU, and what a GPU could do at best. Nothing here needs one.
#pragma once

#include "kernels/device/device.hpp"
#include "trainer/bench/kernel_cases.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

/// What bounds an op.
struct GpuLimits {
  double flops_per_second = 0;  ///< fp32, by fused multiply-adds
  double bytes_per_second = 0;
  double launch_seconds = 0;  ///< of a kernel that does nothing, in a graph
};

/// From multiprocessors and clock. fp32 units of a multiprocessor are known for compute capability 7.0 to
/// 12; later ones count as 128.
double nominal_flops_per_second(const DeviceProperties& properties);
/// From clock and width of the memory, two transfers a clock.
double nominal_memory_bytes_per_second(const DeviceProperties& properties);

/// One launch, and the longer of arithmetic and traffic.
double limit_seconds(const KernelCase& kernel, const GpuLimits& limits);

/// Seconds of one call.
struct KernelTimes {
  double native = 0;
  std::optional<double> vendor;   ///< the same result by cuDNN or cuBLAS
  std::optional<double> library;  ///< the library's call alone, which does less
};

struct KernelRow {
  KernelCase kernel;
  KernelTimes times;
};

std::string table_header();
std::string table_line(const KernelRow& row, const GpuLimits& limits);

/// Which ops are slower than the vendor's, or that none is; empty if nothing was compared.
std::string verdict(const std::vector<KernelRow>& rows);

}  // namespace lockstep::bench
