// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `relu`.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// y = max(x, 0), in place.
class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(const LayerPlace& place) : Layer(place, place.input) {}
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "relu"; }
  LayerOp op() const override { return ReluOp{}; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  OutputNeed output_need() const override { return OutputNeed::kSigns; }
  bool keeps_signs() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return DeviceForm::epilogue_step({.kind = EpilogueKind::kRelu}); }

 private:
  std::size_t size_of(int batch) const { return std::size_t{1} * output().features() * batch; }
};

}  // namespace lockstep
