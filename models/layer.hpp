// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Interface of every layer of a network. It is the one place that says its shapes and its passes, on a CPU and on a
/// GPU. Layers are immutable and hold no numbers, only shapes and offsets.
#pragma once

#include "common/error.hpp"
#include "kernels/cpu/int16/column_maxima.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/shapes.hpp"
#include "models/arena.hpp"
#include "models/device_layer.hpp"
#include "models/layer_ops.hpp"
#include "models/precision.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Neighbouring channels of a layer's output.
struct ChannelRange {
  int first = 0;
  int count = -1;  ///< -1: all

  int of(int channels) const { return count < 0 ? channels : count; }
};

/// Values that all layers share in one pass.
struct LayerPass {
  int batch = 0;    ///< columns
  int samples = 0;  ///< columns that are samples; the others are padding
  bool training = false;
  PassKey key;
  int grain = 0;  ///< columns of a full grain
  /// For layers that can be run for some channels at a time: which these are.
  ChannelRange channels = {};
};

/// The tensors of one layer in one pass, batch innermost, memory of the CPU. The forward pass
/// sets x, y, weights and saved, the backward pass all of them. In a pass over some channels, y and dy begin with the
/// first of these, and in a layer that is_channelwise() x, dx and saved too; the rest is the layer's whole.
struct LayerTensors {
  const float* weights = nullptr;  ///< this layer's range of the arena: weight, then bias
  const float* x = nullptr;        ///< in backward: valid if needs_input()
  float* y = nullptr;              ///< in backward: valid if needs_output()
  ImagePart read = {};             ///< the part of y that is read, as Conv2dShape::read
  std::uint8_t* saved = nullptr;   ///< saved_bytes() bytes, kept from forward to backward
  const float* dy = nullptr;
  float* dx = nullptr;              ///< the memory of dy where y has that of x
  float* gradients = nullptr;       ///< this layer's range of the gradient arena, or its terms
  std::size_t term_stride = 0;      ///< from a term of the gradients to the next one
  const float* kept = nullptr;      ///< this layer's kept tensors, one after the other
  std::byte* statistics = nullptr;  ///< for a BatchLayer in training
  // For layers with a branch():
  const float* branch = nullptr;  ///< the output of that layer; in backward: valid if needs_branch()
  float* dbranch = nullptr;       ///< its gradient; null: not needed, or dy's memory is that, too
  bool adds_to_dbranch = false;   ///< otherwise overwrites it
  // For a BatchLayer:
  cpu::NormSteps steps = {};    ///< those of the layers after it that run with it
  float* stepped_dy = nullptr;  ///< dy before its backward steps, which then is dy
  // In 16-bit integers, for tensors that are operands; otherwise null. A layer may find those of what it writes.
  cpu::ColumnMaxima *maxima_of_x = nullptr, *maxima_of_y = nullptr, *maxima_of_dy = nullptr,
                    *maxima_of_dx = nullptr;
};

/// Place of a layer in its network.
struct LayerPlace {
  std::string name;       ///< "conv1"
  std::uint32_t index{};  ///< among all layers
  ImageShape input;
  std::size_t parameter_offset = 0;        ///< first element of this layer in the arena
  std::size_t kept_offset = 0;             ///< first one among the kept elements
  Precision precision = Precision::kFp32;  ///< for layers with a weight
};

class BatchLayer;  // models/batch_layer.hpp

class Layer {
 public:
  /// Memory of y: new memory; that of x, unless its bits are needed afterwards; or y is x, untouched.
  enum class OutputMemory { kNew, kInPlace, kView };

  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& name() const { return place_.name; }
  Precision precision() const { return place_.precision; }
  const ImageShape& input() const { return place_.input; }
  const ImageShape& output() const { return output_; }
  /// Weight and bias, with their offsets in the arena; empty for layers without.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::size_t parameter_offset() const { return place_.parameter_offset; }
  std::size_t parameter_size() const;
  /// Tensors that the layer keeps from step to step without training them, with offsets among the kept elements.
  const std::vector<Parameter>& kept() const { return kept_; }
  std::size_t kept_offset() const { return place_.kept_offset; }

  /// "conv2d 10@5x5": the kind and what tells it from others of its kind, for people.
  virtual std::string describe() const = 0;
  /// For code that computes a layer by other means than the passes below: visit it, all kinds at once.
  virtual LayerOp op() const = 0;
  virtual OutputMemory output_memory() const { return OutputMemory::kNew; }
  /// backward_weights or backward_data reads x.
  virtual bool needs_input() const { return false; }
  /// backward_data reads y.
  virtual bool needs_output() const { return false; }
  /// The output can be logits, over which their gradient is written.
  virtual bool may_be_last() const { return !needs_output(); }
  /// The earlier layer whose output is this one's second input; none: there is one input.
  virtual std::optional<std::size_t> branch() const { return std::nullopt; }
  /// backward_data reads the output of branch().
  virtual bool needs_branch() const { return false; }
  /// The gradient of branch() is dy, number by number.
  virtual bool passes_gradient_to_branch() const { return false; }
  /// True if the output of the layer before enters in this layer's.
  virtual bool reads_layer_before() const { return true; }
  /// The part of the input that this part of the output is made of.
  virtual ImagePart reads_for(const ImagePart& /*of_output*/) const {
    return {input().height, input().width};
  }
  virtual std::size_t saved_bytes(int /*batch*/) const { return 0; }
  /// forward and backward_weights may be called for some channels of the output at a time.
  virtual bool splits_outputs() const { return false; }
  /// Channel c of the output is made of channel c of the input, and of saved only its part. Forward and backward_data
  /// may be called for some channels at a time.
  virtual bool is_channelwise() const { return false; }
  /// Not null: the layer's passes need sums over the global batch.
  virtual const BatchLayer* over_batch() const { return nullptr; }
  /// Elements of a bias, or of another parameter, that the layer's kernels take and it does not have.
  virtual std::size_t missing_bias() const { return 0; }
  /// Multiplications and additions of one direction for one sample, as torchvision counts them. They count all
  /// outputs, those with an image's padding, too, of layers with parameters.
  virtual double flops_per_sample() const { return 0; }
  /// Those that this part of the output needs, none with padding.
  virtual double needed_flops_per_sample(const ImagePart& /*of_output*/) const { return flops_per_sample(); }

  // On a CPU.

  /// Numbers that the kernels of this layer keep as scratch memory, at most.
  virtual std::uint64_t scratch_numbers(int /*columns*/) const { return 0; }
  virtual void forward(const LayerPass& pass, const LayerTensors& tensors) const = 0;
  /// How many terms the gradient of a grain is, each rounded to fixed point by itself.
  virtual int gradient_terms(int /*grain*/) const { return 1; }
  /// Overwrites this layer's gradients with the sums over the batch, term by term.
  virtual void backward_weights(const LayerPass& /*pass*/, const LayerTensors& /*tensors*/) const {}
  virtual void backward_data(const LayerPass& pass, const LayerTensors& tensors) const = 0;

  // On a GPU. The passes are those of layers whose form is a stage; the defaults must not be called.

  virtual DeviceForm device_form() const { return {}; }
  /// Describes what is larger in this layer than a GPU's grid can have; none: nothing.
  virtual std::optional<std::string> beyond_device() const { return std::nullopt; }
  virtual void device_forward(const DeviceLayerPass& /*pass*/, const DeviceLayerTensors& /*tensors*/) const {
    LOCKSTEP_CHECK(!"a stage of its own");
  }
  /// Runs the last layer of a network and the loss of its output in one launch. The gradient of y takes its place,
  /// and with a dx that is written, too. False, and nothing is queued: they need separate launches.
  virtual bool device_forward_loss(const DeviceLayerPass& /*pass*/, const DeviceLayerTensors& /*tensors*/,
                                   const DeviceLoss& /*loss*/) const {
    return false;
  }
  /// Accumulates this layer's gradients, grain by grain.
  virtual void device_backward_weights(const DeviceLayerPass& /*pass*/,
                                       const DeviceLayerTensors& /*tensors*/) const {
    LOCKSTEP_CHECK(!"a stage with parameters");
  }
  virtual void device_backward_data(const DeviceLayerPass& /*pass*/,
                                    const DeviceLayerTensors& /*tensors*/) const {
    LOCKSTEP_CHECK(!"a stage of its own");
  }

 protected:
  Layer(LayerPlace place, const ImageShape& output);
  /// Gives the layer the tensor NAME.what, after those that it has; trained, or only kept. @param fan_in  of a random one
  void add_parameter(const std::string& what, const std::vector<int>& shape, Parameter::Initial initial,
                     int fan_in = 0);
  void add_kept(const std::string& what, int size, Parameter::Initial initial);
  std::uint32_t index() const { return place_.index; }

 private:
  LayerPlace place_;
  ImageShape output_;
  std::vector<Parameter> parameters_, kept_;
};

/// Numbers of so many channels, all samples together.
inline std::size_t numbers_of(const ImageShape& shape, int batch, const ChannelRange& channels = {}) {
  return std::size_t{1} * channels.of(shape.channels) * shape.height * shape.width * batch;
}
/// As PyTorch counts them: a vector has one.
std::vector<int> dimensions_of(const ImageShape& shape);
/// "10x24x24", or "50" for a plain vector.
std::string to_string(const ImageShape& shape);

}  // namespace lockstep
