// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers of a network that work on the same tensor on a CPU, and those that read it.
#pragma once

#include "models/layer.hpp"
#include "models/network.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

using Layers = std::span<const std::shared_ptr<const Layer>>;

/// For each layer, whether its output is the branch of a later one.
std::vector<bool> layers_that_branch(Layers layers);

/// For each layer in [first, last), the part of its output that later ones read; for the last one, all.
std::vector<ImagePart> parts_read(Layers layers, std::size_t first, std::size_t last);

/// For each layer, the number of the tensor that it writes. 0 is the network's input, and a layer reads what
/// the one before it wrote. In place where the layer can and the bits that it would overwrite are not needed.
std::vector<std::size_t> output_tensors(Layers layers);

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

/// Tensors of a part, by number. Layers are counted from the first one of the part.
class TensorUses {
 public:
  /// One activation, shared by a layer and those that work on its output in place. Tensor 0 is the input.
  struct Tensor {
    std::size_t producer = 0;  ///< the first layer that writes it
    std::size_t reader = 0;    ///< the layer that makes another tensor of it; for the last tensor, none
    std::size_t bytes = 0;
  };

  /// @param batch  samples of a pass
  TensorUses(const Network& network, int batch, const NetworkPart& part);

  std::size_t layer_count() const { return layers_.size(); }
  const Layer& layer(std::size_t i) const { return *layers_[i]; }
  std::size_t saved_bytes(std::size_t i) const { return layer(i).saved_bytes(batch_); }
  std::size_t output_bytes(std::size_t i) const { return bytes_of(layer(i).output()); }
  std::optional<std::size_t> branch_of(std::size_t i) const;

  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::size_t last_tensor() const { return tensors_.size() - 1; }
  std::size_t input_of(std::size_t i) const { return x_[i]; }
  std::size_t output_of(std::size_t i) const { return y_[i]; }
  bool in_place(std::size_t i) const { return x_[i] == y_[i]; }

  /// TensorPlan::first_trained.
  std::size_t first_trained() const { return first_trained_; }
  /// A tensor before the first layer with parameters, or the last one, has no gradient, unless others need it.
  bool has_gradient(std::size_t t) const;

  const std::vector<ChannelRun>& runs() const { return runs_; }
  /// The last layer of the run that begins with this one; itself where none does.
  std::size_t last_of_run(std::size_t first) const;
  /// The first layer of the run that ends with this one; itself where none does.
  std::size_t first_of_run(std::size_t last) const;

  /// Calls use(tensor, whether backward reads it) for all that a layer reads and writes.
  template <typename Use>
  void for_each_use(std::size_t i, const Use& use) const {
    if (layer(i).reads_layer_before()) use(x_[i], layer(i).needs_input());
    use(y_[i], layer(i).needs_output());
    if (const auto from = branch_of(i)) use(y_[*from], layer(i).needs_branch());
  }

 private:
  void name_tensors(const std::vector<std::size_t>& all);
  std::size_t bytes_of(const ImageShape& shape) const {
    return sizeof(float) * static_cast<std::size_t>(shape.features()) * static_cast<std::size_t>(batch_);
  }

  NetworkPart part_;
  Layers layers_;
  int batch_;
  std::size_t first_trained_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> x_, y_;  ///< layer → tensor
  std::vector<ChannelRun> runs_;
};

}  // namespace lockstep
