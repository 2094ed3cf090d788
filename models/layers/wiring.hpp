// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that join what several layers compute: add, multiply, concat, route; and flatten.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>
#include <string>

namespace lockstep {

// The layer `add: {from: NAME}`, also written `add: NAME`: a residual connection.

/// y = x + the output of an earlier layer; the gradient flows to both.
class AddLayer final : public Layer {
 public:
  AddLayer(const LayerPlace& place, std::string from, std::size_t branch)
      : Layer(place, place.input), from_(std::move(from)), branch_(branch) {}
  /// @throws ConfigError, ShapeError  if there is no such layer before this one, or its output has another
  /// shape
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "add " + from_; }
  LayerOp op() const override { return AddOp{}; }
  std::optional<std::size_t> branch() const override { return branch_; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {.passes_gradient = true}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  std::size_t size_of(int batch) const { return std::size_t{1} * output().features() * batch; }

  std::string from_;
  std::size_t branch_;
};

// The layer `multiply: {from: NAME}`, also written `multiply: NAME`: a gate.

/// y = x times the output of an earlier layer, number by number; or one of both is [channels, 1, 1] and scales each
/// channel of the other. The gradient flows to both.
class MultiplyLayer final : public Layer {
 public:
  MultiplyLayer(const LayerPlace& place, const EarlierLayer& from);
  /// @throws ConfigError, ShapeError  if there is no such layer before this one, or its output does not fit
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "multiply " + from_; }
  LayerOp op() const override { return MultiplyOp{shape_of(1), input_scales_}; }
  std::optional<std::size_t> branch() const override { return branch_; }
  bool needs_input() const override { return true; }
  bool needs_branch() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  ScaleShape shape_of(int batch) const;

  std::string from_;
  std::size_t branch_;
  bool same_shape_;
  bool input_scales_;
};

// The layer `concat: {from: NAME}`, also written `concat: NAME`: channels of two layers.

/// y = the channels of an earlier layer's output and behind them those of x, as torch.cat([earlier, x], 1).
class ConcatLayer final : public Layer {
 public:
  ConcatLayer(const LayerPlace& place, const EarlierLayer& from);
  /// @throws ConfigError, ShapeError  if there is no such layer before this one, or its output has another
  /// height or width
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "concat " + from_; }
  LayerOp op() const override { return ConcatOp{}; }
  std::optional<std::size_t> branch() const override { return branch_; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  int branch_features() const { return output().features() - input().features(); }

  std::string from_;
  std::size_t branch_;
};

// The layer `route: {from: NAME}`, also written `route: NAME`: the list goes on from an earlier layer.

/// y = the output of an earlier layer; what stands before is not read, unless a later layer names it.
class RouteLayer final : public Layer {
 public:
  RouteLayer(const LayerPlace& place, std::string from, std::size_t branch, const ImageShape& shape)
      : Layer(place, shape), from_(std::move(from)), branch_(branch) {}
  /// @throws ConfigError  there is no such layer before this one
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "route " + from_; }
  LayerOp op() const override { return RouteOp{}; }
  std::optional<std::size_t> branch() const override { return branch_; }
  bool reads_layer_before() const override { return false; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  std::size_t size_of(const ImageShape& shape, int batch) const {
    return std::size_t{1} * shape.features() * batch;
  }

  std::string from_;
  std::size_t branch_;
};

// The layer `flatten`: [channels, height, width] becomes a plain vector of features. Nothing moves in
// memory, and `linear` does it by itself; it is there for those who like to write it.

class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const LayerPlace& place) : Layer(place, {place.input.features(), 1, 1}) {}
  static std::unique_ptr<Layer> make(const LayerOptions& /*options*/, const LayerPlace& place) {
    return std::make_unique<FlattenLayer>(place);
  }

  std::string describe() const override { return "flatten"; }
  LayerOp op() const override { return ViewOp{}; }
  OutputMemory output_memory() const override { return OutputMemory::kView; }
  void forward(const LayerPass& /*pass*/, const LayerTensors& /*tensors*/) const override {}
  void backward_data(const LayerPass& /*pass*/, const LayerTensors& /*tensors*/) const override {}
  DeviceForm device_form() const override { return DeviceForm::nothing(); }
};

}  // namespace lockstep
