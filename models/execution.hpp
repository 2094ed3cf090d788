// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network, or some neighbouring layers of it, at work on one grain, on a CPU.
#pragma once

#include "common/buffers.hpp"
#include "common/timeline.hpp"
#include "kernels/shapes.hpp"
#include "models/arena.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "models/tensor_maxima.hpp"
#include "models/tensor_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

class BatchStatistics;

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

/// The first parameter of a part in the arena, and how many numbers its layers have there.
struct ParameterRange {
  std::size_t offset = 0, size = 0;
};
ParameterRange parameters_of(const Network& network, const NetworkPart& part);

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

  /// Layers in training are slices of this timeline, while it is open. Borrows it; null: of none.
  void record_into(Timeline* timeline) { timeline_ = timeline; }

  /// Memory for the input, [features, batch]. Destroyed by the passes.
  float* input() { return at(plan_.input); }
  /// The whole pass, where there are no cuts; dropout is active only in training. Returns the output, of the last layer
  /// the logits [classes, batch], valid until the next call but backward().
  /// @param samples  columns that are samples, the others being padding; -1: all
  float* forward_training(const float* weights, int batch, const PassKey& key, int samples = -1);
  float* forward_evaluation(const float* weights, int batch);
  /// After forward_training: overwrites `gradients` (arena order) with the sums over this grain.
  /// @param gradient  gradient of the output, [features, batch]: logits(), output_gradient() or other memory. Destroyed
  void backward(float* gradient, float* gradients, const GradientReady& on_ready,
                const BetweenLayers& between_layers = {});

  // Passes from cut to cut, for any network:

  void begin_training(const TrainingGrain& grain) { begin(grain, true); }
  /// Runs on to the next cut, adds this grain's terms to its sums and returns true. False at the end of the
  /// network. Before it is called again, the cut's statistics must be there.
  bool forward_to_cut(std::int64_t* words);
  /// The output; of the last layer [classes, batch].
  float* logits() { return at(plan_.layers.back().y); }
  /// @param gradient  gradient of the output; may be logits(). Destroyed
  void begin_backward(float* gradient);
  bool backward_to_cut(const BackwardTarget& target, std::int64_t* words);

  // Gradients at the ends of a part:

  /// Memory for the gradient of the output, [features, batch], after forward_training. In a part that takes none from
  /// others: the output's.
  float* output_gradient();
  /// After backward: [features, batch], valid until the next call; null if it is not wanted.
  const float* input_gradient() { return gives_input_gradient_ ? at(plan_.input_gradient) : nullptr; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// A run, and what its layers hand on. That is the output of its first layer, on which others may work in place.
  struct LayerRun {
    ChannelRun layers;
    std::size_t reader;       ///< the layer that makes another tensor of it; after the run: none of these
    bool is_kept;             ///< backward reads that output
    bool has_whole_gradient;  ///< its gradient is more than what the first layer's weights need
    std::string name = {};    ///< "conv1+pool1+relu1"
  };

  void begin(const TrainingGrain& grain, bool training);
  /// The layer at hand needs sums that are not there yet.
  bool stops_at(std::size_t i);

  // Layers of the part, counted from its first one, over the memory that plan_tensors laid out.

  std::size_t size() const { return layers_.size(); }
  const Layer& layer(std::size_t i) const { return *layers_[i]; }
  float* at(std::size_t offset) { return reinterpret_cast<float*>(memory_.data() + offset); }
  std::size_t offset_of(std::size_t i) const { return layer(i).parameter_offset() - parameters_.offset; }
  /// Offsets of all layers, in forward or after it.
  using Offsets = std::vector<TensorPlan::LayerOffsets>;
  LayerTensors tensors_at(const Offsets& offsets, std::size_t i);
  LayerTensors backward_tensors(std::size_t i, float* gradients);
  /// dy of layer i.
  float* gradient_at(std::size_t i);
  /// Tensors of BatchLayer i in forward, with its steps.
  LayerTensors tensors_with_steps(const Offsets& offsets, std::size_t i);
  LayerRun run_of(const ChannelRun& layers) const;
  const LayerRun* run_at(std::size_t i) const { return runs_of_[i] == kNone ? nullptr : &runs_[runs_of_[i]]; }
  /// With the first layer of its run, or as a step of a BatchLayer.
  bool runs_with_another(std::size_t i) const;
  template <typename F>
  void for_each_channels(const LayerRun& run, const F& f);
  /// Tensors of layer i of the run, from these channels on.
  LayerTensors of_channels(const LayerRun& run, std::size_t i, const LayerTensors& whole) const;
  /// Runs layer i; with the first layer of a run, or a BatchLayer and its steps, all of them. For the others
  /// nothing is left to do.
  void forward(const Offsets& offsets, std::size_t i);
  void run_forward(const Offsets& offsets, const LayerRun& run);
  /// Gradients of weights and data of layer i, which becomes the gradient of what it read. Or from the last
  /// layer of a run on; the first one's weights then wait to be ready.
  void backward(std::size_t i, const BackwardTarget& target);
  void run_backward(const LayerRun& run, float* gradients);
  void finish_backward(std::size_t i, const BackwardTarget& target);
  /// Terms that BatchLayer i adds before its backward pass, with those of its steps.
  void add_backward_sums(std::size_t i, float* gradients, std::int64_t* words);
  /// The tensors with which layer i's backward_weights writes all terms of its gradients, in room for one layer's.
  LayerTensors with_terms(std::size_t i, const LayerTensors& tensors);
  /// Adds them up: tensors.gradients become the fp32 sum. @returns them, valid until the next layer's
  GradientTerms sum_terms(std::size_t i, const LayerTensors& tensors) const;
  /// The gradient of the output of layer i becomes that of all that read it.
  void join_branches(std::size_t i);
  /// In training only.
  Timeline* timeline() const { return pass_.training ? timeline_ : nullptr; }

  bool gives_input_gradient_;
  ParameterRange parameters_;
  TensorPlan plan_;
  AlignedBuffer<std::byte> memory_;
  Layers layers_;
  TensorMaxima maxima_;
  std::vector<ImagePart> read_;  ///< layer → the part of its output that is read
  std::vector<LayerRun> runs_;
  std::vector<std::size_t> runs_of_;  ///< layer → its run, or kNone
  std::vector<std::size_t> norms_;    ///< a BatchLayer and its steps → that layer; others → kNone
  AlignedBuffer<float> terms_;
  Timeline* timeline_ = nullptr;

  // The pass at hand.
  TrainingGrain grain_;
  LayerPass pass_;
  float* gradient_of_output_ = nullptr;
  std::size_t made_again_ = kNone;  ///< the layer before whose backward that was done last
  std::size_t next_ = 0;            ///< in forward: the layer to run; in backward: the one after it
  bool terms_added_ = false;        ///< by that layer, if it is a cut
  bool may_go_back_ = false;        ///< a whole forward pass in training was done, and no backward pass
};

// Memory of a network on a CPU, before anything is allocated there.

/// Bytes that one Execution of so many columns needs. The other: at most what the kernels of its thread keep as
/// scratch memory: the padded image and the rearranged weights of the largest layer.
std::uint64_t execution_bytes(const Network& network, int columns, const NetworkPart& part = {});
std::uint64_t kernel_scratch_bytes(const Network& network, int columns);

}  // namespace lockstep
