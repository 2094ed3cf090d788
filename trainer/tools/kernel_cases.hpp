// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops that a GPU runs in a training step of a network, as things to measure. Nothing here needs a GPU.
#pragma once

#include "kernels/device.hpp"
#include "models/network.hpp"
#include "models/stages.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::bench {

/// Stages have batch 1; the batch is the case's.
struct GatherOp {
  int features = 0;
};
struct ForwardOp {
  Stage stage;
};
/// From the gradient of a stage to that of the stage before it, through the latter's epilogue.
struct DataGradientOp {
  Stage stage, before;
};
struct WeightGradientOp {
  Stage stage;
};
/// The epilogue on its own, which is part of other ops in training.
struct EpilogueOp {
  Stage stage;
  bool backward = false;
};
/// The pool on its own, likewise.
struct PoolOp {
  Pool2dShape shape;
  bool max = true, backward = false;
};
struct LossOp {
  int classes = 0;
};
/// With momentum.
struct UpdateOp {
  std::size_t parameters = 0;
};

using KernelOp =
    std::variant<GatherOp, ForwardOp, DataGradientOp, WeightGradientOp, EpilogueOp, PoolOp, LossOp, UpdateOp>;

struct KernelCase {
  std::string name;  ///< "net conv2 forward, dropout2d max_pool relu"
  KernelOp op;
  int batch = 0;
  double flops = 0;  ///< of the products; 0 for ops that only move data
  double bytes = 0;  ///< that must be read or written at least once
};

/// In the order of a step; behind it the parts that are fused in training.
std::vector<KernelCase> kernel_cases(const Network& network, int batch);

// The table of `lockstep bench kernels` on a GPU, and what a GPU could do at best. Nothing here needs one.

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
