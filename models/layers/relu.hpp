// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layer `relu`.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// y = max(x, 0), in place; remembers which are positive.
class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(const LayerPlace& place) : Layer(place, place.input) {}
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "relu"; }
  LayerOp op() const override { return ReluOp{}; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  std::size_t saved_bytes(int batch) const override {
    return sign_bytes(std::size_t{1} * output().features() * static_cast<std::size_t>(batch));
  }
  /// Logits need both signs.
  bool may_be_last() const override { return false; }
  bool is_channelwise() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return DeviceForm::epilogue_step({.kind = EpilogueKind::kRelu}); }

 private:
  std::size_t size_of(const LayerPass& pass) const {
    return std::size_t{1} * pass.channels.of(output().channels) * output().height * output().width *
           pass.batch;
  }
};

}  // namespace lockstep
