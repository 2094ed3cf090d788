// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The optimiser and its state: one momentum buffer in arena order.
#pragma once

#include "common/aligned_buffer.hpp"
#include "kernels/ops.hpp"
#include "trainer/config/job.hpp"

#include <span>

namespace lockstep {

/// SGD as in torch.optim.SGD. State is zero at the start.
class Optimizer {
 public:
  Optimizer(const OptimizerSection& section, std::size_t parameters);

  /// Moves the weights by one step along the mean gradient; one kernel over the whole arena.
  void step(Ops& ops, std::span<const float> gradient, std::span<float> weights);

  /// [parameters]; saved with and restored from checkpoints.
  std::span<float> momentum() { return momentum_.span(); }

 private:
  SgdParams params_;
  AlignedBuffer<float> momentum_;
};

}  // namespace lockstep
