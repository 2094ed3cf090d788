// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `add: {from: NAME}`, also written `add: NAME`: a residual connection.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

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

}  // namespace lockstep
