// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Assigns the memory that each layer of a network reads and writes in a training pass.
#pragma once

#include "models/tensor_uses.hpp"

#include <cstddef>
#include <vector>

namespace lockstep {

/// Offsets in bytes into one block. Activations that backward does not need give their place to others as
/// soon as the next layer has read them, and gradients live only between two layers. The input and the last
/// layer's output keep their place throughout, so that a pass may be repeated and the gradient of the logits
/// may overwrite them. A part that recomputes is cut where one tensor alone goes on: of the segments but the last one
/// those tensors alone are kept, and the layers of a segment run once more before backward reaches it. A large part that
/// does not makes outputs of norms and routes again, each right before backward first reads it.
struct TensorPlan {
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct LayerOffsets {
    std::size_t x = 0, y = 0;
    bool in_place = false;  ///< x and y are one tensor: so are dx and dy
    std::size_t saved = 0;
    std::size_t dy = kNone;  ///< kNone: the caller's gradient of the logits
    std::size_t dx = kNone;  ///< kNone: not needed, nothing before this layer is trained
    // For layers with a branch:
    std::size_t branch = kNone;
    std::size_t dbranch = kNone;   ///< kNone: not needed, or dy's memory is that, too
    bool adds_to_dbranch = false;  ///< another layer with this branch, after this one, has written it
    /// Memory in which branches of this layer's output leave their gradients, to be added to dy; kNone: there are
    /// none.
    std::size_t from_branches = kNone;
  };

  std::vector<LayerOffsets> layers;  ///< for the part, in forward
  std::vector<LayerOffsets> back;    ///< in backward, and where layers run once more
  /// For each layer, those that run once more before backward reaches it, in order; for most, none.
  std::vector<std::vector<std::size_t>> again;
  /// Layers of the part that may be run some channels at a time. All that they read and write is there until the last
  /// of them has ended.
  std::vector<ChannelRun> runs;
  std::size_t input = 0;
  std::size_t input_gradient = kNone, output_gradient = kNone;  ///< as the part says
  /// The layer of the part where backward ends. It is the first one with parameters, or the first one of all if the
  /// gradient of the input is wanted; none of its layers if there is nothing to do.
  std::size_t first_trained = 0;
  std::size_t bytes = 0;
};

/// No layer of the part has a branch() outside it.
TensorPlan plan_tensors(const Network& network, int batch, const NetworkPart& part = {});

}  // namespace lockstep
