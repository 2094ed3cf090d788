// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers `dropout: {p: 0.5}` and `dropout2d: {p: 0.5}`, also written `dropout: 0.5`.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>

namespace lockstep {

/// In training, sets units to zero with probability p and scales the others by 1 / (1 - p); nothing in
/// evaluation. A unit is one number (dropout) or one channel of the image (dropout2d). The mask is not
/// stored: backward draws it again from the same key.
class DropoutLayer final : public Layer {
 public:
  enum class Unit { kElement, kChannel };

  DropoutLayer(const LayerPlace& place, Unit unit, float probability)
      : Layer(place, place.input), unit_(unit), probability_(probability) {}
  static std::unique_ptr<Layer> make_elementwise(const LayerOptions& options, const LayerPlace& place);
  static std::unique_ptr<Layer> make_channelwise(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override;
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;

 private:
  /// Channels of more than one number.
  bool drops_channels() const { return unit_ == Unit::kChannel && input().height * input().width > 1; }
  DropoutShape shape_of(int batch) const;
  DropoutKey key_of(const PassKey& key) const;

  Unit unit_;
  float probability_;
};

}  // namespace lockstep
