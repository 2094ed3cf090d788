// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Assigns the memory that each layer of a network reads and writes in a training pass.
#pragma once

#include "models/layer.hpp"
#include "models/network.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

// Layers that work on the same tensor on a CPU, and those whose output is read again later.

using Layers = std::span<const std::shared_ptr<const Layer>>;

/// For each layer, whether its output is the branch of a later one.
std::vector<bool> layers_that_branch(Layers layers);

/// For each layer in [first, last), the part of its output that later ones read; for the last one, all.
std::vector<ImagePart> parts_read(Layers layers, std::size_t first, std::size_t last);

/// For each layer, the number of the tensor that it writes. 0 is the network's input, and a layer reads what
/// the one before it wrote. In place where the layer can and the bits that it would overwrite are not needed.
std::vector<std::size_t> output_tensors(Layers layers);

// Lets tensors share memory if never used at once, so that a grain's working set stays in the
// cache.

/// A tensor that must keep its contents from one moment to another, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one for each lifetime, multiples of kAlignmentBytes
  std::size_t bytes = 0;             ///< for all together

  static constexpr std::size_t kAlignmentBytes = 64;
};

/// Largest first, each at the lowest place where it overlaps nothing that lives at the same time.
MemoryPlan plan_memory(std::span<const Lifetime> tensors);

// Layers that run together on a CPU, some channels at a time. So what they hand on is still in the cache.

/// The layers [first, last]. The first is one whose outputs can be had a few at a time, and those after it that work
/// on each channel by itself; or a BatchLayer, and those after it that are LayerTensors::steps of its.
struct ChannelRun {
  std::size_t first = 0, last = 0;
  bool has_steps = false;
};

/// Runs of at least two layers, in order, counted from the first of these layers.
/// @param branched  for each of them, whether others branch off its output: they want it whole
std::vector<ChannelRun> channel_runs(Layers layers, const std::vector<bool>& branched);

/// Neighbouring layers of a network that are run by themselves; by default, all.
struct NetworkPart {
  std::size_t first = 0, last = ~std::size_t{0};  ///< [first, last) among all layers; at most all
  /// Something before it is trained: its backward pass ends with the gradient of its input.
  bool gives_input_gradient = false;
  /// Others run what is after it, and bring the gradient of its output.
  bool takes_output_gradient = false;
  /// Backward makes activations again in place of keeping all of them: at most one more forward pass, the same bits.
  bool recomputes = false;
};

/// Its layers, of which there is at least one. They are the network's.
Layers layers_of(const Network& network, const NetworkPart& part);

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
