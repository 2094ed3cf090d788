// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Base of every execution on a CPU: layers over the memory that plan_tensors laid out, run one at a time.
#pragma once

#include "common/buffers.hpp"
#include "common/timeline.hpp"
#include "kernels/shapes.hpp"
#include "models/execution.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "models/tensor_maxima.hpp"
#include "models/tensor_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// Room for the terms of one layer's gradients, which an execution has in work.

class Layer;
struct LayerPass;
struct LayerTensors;

class GradientScratch {
 public:
  /// The layer's backward_weights: tensors.gradients become the fp32 sum of the terms.
  /// @returns the terms, valid until the next call: the gradients themselves, where they are one term
  GradientTerms backward_weights(const Layer& layer, const LayerPass& pass, const LayerTensors& tensors);

  // For several calls of the layer's backward_weights, of some channels each.
  /// @returns the tensors that the layer must be called with
  LayerTensors begin(const Layer& layer, int grain, const LayerTensors& tensors);
  /// @param tensors  as given to begin()
  GradientTerms finish(const Layer& layer, const LayerPass& pass, const LayerTensors& tensors);

 private:
  AlignedBuffer<float> terms_;
};

/// The layers of a network, or of a part of it, counted from the first one. Weights and gradients are those of these
/// layers alone. The caller decides the order and the end. Not thread-safe. Borrows the network.
class LayerWalk {
 public:
  /// @param max_batch  as Execution's
  /// @throws MemoryError  this machine has too little for them
  LayerWalk(const Network& network, const NetworkPart& part, int max_batch);

  std::size_t size() const { return layers_.size(); }
  const Layer& layer(std::size_t i) const { return *layers_[i]; }
  const LayerPass& pass() const { return pass_; }
  const TrainingGrain& grain() const { return grain_; }
  /// The layer at which backward ends: TensorPlan::first_trained.
  std::size_t first_trained() const { return plan_.first_trained; }

  float* input() { return at(plan_.input); }
  float* output() { return at(plan_.layers.back().y); }
  /// The plan's memory for the gradient of the output; the output's memory if it has none.
  float* output_gradient();
  /// Null: not wanted.
  const float* input_gradient();

  /// Serves Execution::record_into().
  void record_into(Timeline* timeline) { timeline_ = timeline; }
  /// A pass over a grain, which must fit.
  void begin(const TrainingGrain& grain, bool training);
  /// Runs layer i; with the first layer of a run, or a BatchLayer and its steps, all of them. For the others
  /// nothing is left to do.
  void forward(std::size_t i);
  /// From here on back, with the gradient of the output.
  void begin_backward(float* gradient) {
    gradient_of_output_ = gradient;
    made_again_ = kNone;
    maxima_.forget_gradients();
  }
  /// Before anything of layer i's backward: what it and those before it need, and was not kept, is made again.
  void make_again(std::size_t i);
  void use_weights(const float* weights) { grain_.weights = weights; }
  /// Gradients of weights and data of layer i, which becomes the gradient of what it read. Or from the last
  /// layer of a run on; the first one's weights then wait to be ready.
  void backward(std::size_t i, const BackwardTarget& target);

  // Terms that BatchLayer i adds before its passes; in backward with those of its steps.
  void add_forward_sums(std::size_t i, std::int64_t* words);
  void add_backward_sums(std::size_t i, float* gradients, std::int64_t* words);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// A run, and what its layers hand on. That is the output of its first layer, on which others may work in place.
  struct LayerRun {
    ChannelRun layers;
    std::size_t reader = 0;  ///< the layer that makes another tensor of it; after the run: none of these
    bool is_kept = true;     ///< backward reads that output
    bool has_whole_gradient = true;  ///< its gradient is more than what the first layer's weights need
    std::string name = {};           ///< "conv1+pool1+relu1"
  };

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
  void forward_at(const Offsets& offsets, std::size_t i);
  LayerRun run_of(const ChannelRun& layers) const;
  const LayerRun* run_at(std::size_t i) const { return runs_of_[i] == kNone ? nullptr : &runs_[runs_of_[i]]; }
  /// With the first layer of its run, or as a step of a BatchLayer.
  bool runs_with_another(std::size_t i) const;
  template <typename F>
  void for_each_channels(const LayerRun& run, const F& f);
  /// Tensors of layer i of the run, from these channels on.
  LayerTensors of_channels(const LayerRun& run, std::size_t i, const LayerTensors& whole) const;
  void run_forward(const Offsets& offsets, const LayerRun& run);
  void run_backward(const LayerRun& run, float* gradients);
  void finish_backward(std::size_t i, const BackwardTarget& target);
  /// In training only.
  Timeline* timeline() const { return pass_.training ? timeline_ : nullptr; }
  /// The gradient of the output of layer i becomes that of all that read it.
  void join_branches(std::size_t i);

  bool gives_input_gradient_;
  int max_batch_;
  ParameterRange parameters_;
  TensorPlan plan_;
  AlignedBuffer<std::byte> memory_;
  std::vector<const Layer*> layers_;
  TensorMaxima maxima_;
  std::vector<ImagePart> read_;  ///< layer → the part of its output that is read
  std::vector<LayerRun> runs_;
  std::vector<std::size_t> runs_of_;  ///< layer → its run, or kNone
  std::vector<std::size_t> norms_;    ///< a BatchLayer and its steps → that layer; others → kNone
  TrainingGrain grain_;
  LayerPass pass_;
  GradientScratch scratch_;
  float* gradient_of_output_ = nullptr;
  std::size_t made_again_ = kNone;  ///< the layer before whose backward that was done last
  Timeline* timeline_ = nullptr;
};

}  // namespace lockstep
