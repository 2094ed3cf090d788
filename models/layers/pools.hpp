// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pooling: max, average, and averages of windows that follow from the output's size.
#pragma once

#include "kernels/shapes.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

// What max_pool and avg_pool have in common: their options and shapes.

/// The shape that the options describe for this input, with batch 1.
/// @throws ConfigError, ShapeError  if an option is wrong or the window is larger than the padded image
Pool2dShape read_pool_shape(const LayerOptions& options, const ImageShape& input);
Pool2dShape with_batch(Pool2dShape shape, int batch);
Pool2dShape with_channels(Pool2dShape shape, const ChannelRange& channels);
ImageShape pool_output(const Pool2dShape& shape);
/// An epilogue has pools of 2 x 2 side by side; others are stages of their own.
DeviceForm device_form_of_pool(const Pool2dShape& shape, EpilogueKind kind);
/// "max_pool 3 stride 2 padding 1"; a stride equal to the kernel is left out.
std::string describe_pool(std::string_view kind, const Pool2dShape& shape);

// The layer `max_pool: {kernel: 2, stride: as kernel, padding: 0}`, also written `max_pool: 2`.

/// The largest of each window; backward sends the gradient to where it was.
class MaxPoolLayer final : public Layer {
 public:
  /// @param shape  with batch 1
  MaxPoolLayer(LayerPlace place, const Pool2dShape& shape);
  /// @throws ConfigError, ShapeError  if an option is wrong or the window is larger than the padded image
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return MaxPoolOp{shape_}; }
  std::size_t saved_bytes(int batch) const override { return shape_of(batch).out_size(); }
  bool is_channelwise() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  Pool2dShape shape_of(int batch) const { return with_batch(shape_, batch); }
  Pool2dShape shape_of(const LayerPass& pass) const {
    return with_channels(shape_of(pass.batch), pass.channels);
  }

  Pool2dShape shape_;
};

// The layer `avg_pool: {kernel: 2, stride: as kernel, padding: 0}`, also written `avg_pool: 2`.

/// The mean of each window; padding counts as zeros.
class AvgPoolLayer final : public Layer {
 public:
  /// @param shape  with batch 1
  AvgPoolLayer(LayerPlace place, const Pool2dShape& shape);
  /// @throws ConfigError, ShapeError  if an option is wrong or the window is larger than the padded image
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return AvgPoolOp{shape_}; }
  bool is_channelwise() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override;
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  Pool2dShape shape_of(int batch) const { return with_batch(shape_, batch); }
  Pool2dShape shape_of(const LayerPass& pass) const {
    return with_channels(shape_of(pass.batch), pass.channels);
  }

  Pool2dShape shape_;
};

// The layer `adaptive_avg_pool: {out: 7}`, also written `adaptive_avg_pool: 7`.

/// An image of any size becomes one of out x out, with PyTorch's windows.
class AdaptiveAvgPoolLayer final : public Layer {
 public:
  /// @param shape  with batch 1
  AdaptiveAvgPoolLayer(const LayerPlace& place, const AdaptivePoolShape& shape)
      : Layer(place, {shape.channels, shape.out_height, shape.out_width}), shape_(shape) {}
  /// @throws ConfigError  if the option is wrong
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override;
  LayerOp op() const override { return AdaptiveAvgPoolOp{shape_}; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;

 private:
  AdaptivePoolShape shape_of(int batch) const;

  AdaptivePoolShape shape_;
};

// The layer `global_avg_pool`.

/// The mean of each channel: an image of any size becomes [channels, 1, 1].
class GlobalAvgPoolLayer final : public Layer {
 public:
  explicit GlobalAvgPoolLayer(const LayerPlace& place) : Layer(place, {place.input.channels, 1, 1}) {}
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place);

  std::string describe() const override { return "global_avg_pool"; }
  LayerOp op() const override { return GlobalAvgPoolOp{input()}; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override;
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override;
  DeviceForm device_form() const override { return {}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override;
};

}  // namespace lockstep
