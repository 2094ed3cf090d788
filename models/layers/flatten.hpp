// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `flatten`: [channels, height, width] becomes a plain vector of features. Nothing moves in
/// memory, and `linear` does it by itself; it is there for those who like to write it.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

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
