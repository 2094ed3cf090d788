// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network, or some neighbouring layers of it, at work on one grain, on a CPU.
#pragma once

#include "common/timeline.hpp"
#include "kernels/shapes.hpp"
#include "models/arena.hpp"
#include "models/network.hpp"
#include "models/tensor_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace lockstep {

class BatchStatistics;
class LayerWalk;

/// Called during backward when the gradients in [offset, offset + size) of the arena are final for this
/// grain. The ranges arrive in backward order, each once, and together cover the arena. The terms are rounded to fixed
/// point; they are there during the call. The arena has their sum.
using GradientReady = std::function<void(std::size_t offset, std::size_t size, const GradientTerms& terms)>;

/// Called during backward after each layer: the moments to look after something else, such as messages under
/// way.
using BetweenLayers = std::function<void()>;

/// A grain on its way through a training step.
struct TrainingGrain {
  const float* weights = nullptr;
  int batch = 0;    ///< columns
  int samples = 0;  ///< columns that are samples
  PassKey key;
  BatchStatistics* statistics = nullptr;  ///< the step's; needed by networks with cuts
};

/// Target of backward's gradients, and the functions that it calls.
struct BackwardTarget {
  float* gradients = nullptr;  ///< arena order; overwritten with the sums over the grain
  const GradientReady& on_ready;
  const BetweenLayers& between_layers;
};

/// The activations of a network for one grain: one thread needs them to run forward and backward. A part runs
/// the layers exactly as among the others, with the same bits; weights and gradients are then of
/// the part alone, its first parameter comes first. Not thread-safe. Borrows the network.
///
/// Pass cuts: a layer with sums over the global batch (models/batch_layer.hpp) stops the passes until the
/// others come as far.
class Execution {
 public:
  /// @param max_batch  columns to make room for, those of a full grain: sums are cut by them; a multiple of
  ///                   cpu::kLanes
  /// @throws MemoryError  this machine has too little for them
  Execution(const Network& network, int max_batch, const NetworkPart& part = {});
  Execution(Execution&&) noexcept;
  ~Execution();

  /// Layers in training are slices of this timeline, while it is open. Borrows it; null: of none.
  void record_into(Timeline* timeline);

  /// Memory for the input, [features, batch]. Destroyed by the passes.
  float* input();
  /// The whole pass, where there are no cuts; dropout is active only in training. Returns the output, of the last layer
  /// the logits [classes, batch], valid until the next call but backward().
  /// @param samples  columns that are samples, the others being padding; -1: all
  float* forward_training(const float* weights, int batch, const PassKey& key, int samples = -1);
  float* forward_evaluation(const float* weights, int batch);
  /// After forward_training: overwrites `gradients` (arena order) with the sums over this grain.
  /// @param gradient  gradient of the output, [features, batch]: logits(), output_gradient() or other memory. Destroyed
  void backward(const float* weights, float* gradient, float* gradients, const GradientReady& on_ready,
                const BetweenLayers& between_layers = {});

  // Passes from cut to cut, for any network:

  void begin_training(const TrainingGrain& grain);
  /// Runs on to the next cut, adds this grain's terms to its sums and returns true. False at the end of the
  /// network. Before it is called again, the cut's statistics must be there.
  bool forward_to_cut(std::int64_t* words);
  /// The output; of the last layer [classes, batch].
  float* logits();
  /// @param gradient  gradient of the output; may be logits(). Destroyed
  void begin_backward(float* gradient);
  bool backward_to_cut(const BackwardTarget& target, std::int64_t* words);

  // Gradients at the ends of a part:

  /// Memory for the gradient of the output, [features, batch], after forward_training. In a part that takes none from
  /// others: the output's.
  float* output_gradient();
  /// After backward: [features, batch], valid until the next call; null if it is not wanted.
  const float* input_gradient();

 private:
  void begin(const TrainingGrain& grain, bool training);
  bool stops_at(std::size_t i);

  std::unique_ptr<LayerWalk> walk_;
  std::size_t next_ = 0;      ///< in forward: the layer to run; in backward: the one after it
  bool terms_added_ = false;  ///< by that layer, if it is a cut
  bool may_go_back_ = false;  ///< a whole forward pass in training was done, and no backward pass
};

/// The first parameter of a part in the arena, and how many numbers its layers have there.
struct ParameterRange {
  std::size_t offset = 0, size = 0;
};
ParameterRange parameters_of(const Network& network, const NetworkPart& part);

// Memory of a network on a CPU, before anything is allocated there.

/// Bytes that one Execution of so many columns needs. The other: at most what the kernels of its thread keep as
/// scratch memory: the padded image and the rearranged weights of the largest layer.
std::uint64_t execution_bytes(const Network& network, int columns, const NetworkPart& part = {});
std::uint64_t kernel_scratch_bytes(const Network& network, int columns);

}  // namespace lockstep
