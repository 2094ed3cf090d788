// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops that a GPU runs in a training step of a network, as things to measure. Nothing here needs a GPU.
#pragma once

#include "models/network.hpp"
#include "models/stages.hpp"

#include <cstddef>
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

}  // namespace lockstep::bench
