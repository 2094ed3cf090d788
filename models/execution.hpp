// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Some neighbouring layers of a network at work on one grain, on a CPU: what Execution is for all of them.
#pragma once

#include "kernels/ops.hpp"
#include "models/network.hpp"
#include "models/tensor_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep {

/// Runs the layers of a part exactly as Execution would run them among the others: the bits are the same. Not
/// thread-safe. Borrows the network and the ops. No layer of the part needs sums over the global batch.
class PartExecution {
 public:
  /// @param max_batch  as Execution's
  /// @throws MemoryError  this machine has too little for them
  PartExecution(const Network& network, const NetworkPart& part, Ops& ops, int max_batch);
  PartExecution(PartExecution&&) noexcept;
  ~PartExecution();

  /// Where the input goes, [features, batch]. Destroyed by the passes.
  float* input();
  /// Runs the layers and returns the output [features, batch], valid until the next call but backward().
  /// @param weights  of the part alone: its first parameter comes first
  float* forward_training(const float* weights, int batch, const PassKey& key);
  float* forward_evaluation(const float* weights, int batch);

  /// Where the gradient of the output goes, [features, batch], after forward_training. Of a part that takes none
  /// from others: where the output is. Destroyed by backward().
  float* output_gradient();
  /// After forward_training, and once the gradient of the output is there: overwrites `gradients` (of the part
  /// alone, in arena order) with the sums over this grain. `on_ready` counts from the part's first parameter.
  /// @returns the gradient of the input [features, batch], valid until the next call; null if it is not wanted
  const float* backward(const float* weights, float* gradients, const GradientReady& on_ready,
                        const BetweenLayers& between_layers = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Bytes that one of so many columns takes.
std::size_t part_execution_bytes(const Network& network, const NetworkPart& part, int columns);

/// The first parameter of a part in the arena, and how many numbers its layers have there.
struct ParameterRange {
  std::size_t offset = 0, size = 0;
};
ParameterRange parameters_of(const Network& network, const NetworkPart& part);

// What a network takes on a CPU, before anything is allocated there.

/// Bytes that one Execution of so many columns takes, and at most what the kernels of its thread keep for
/// their own use: the padded image and the rearranged weights of the largest layer.
std::uint64_t execution_bytes(const Network& network, int columns);
std::uint64_t kernel_scratch_bytes(const Network& network, int columns);

}  // namespace lockstep
