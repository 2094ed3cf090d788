// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pooling: max, average, and averages of windows that follow from the output's size.
#include "kernels/device_ops.hpp"
#include "kernels/shapes.hpp"
#include "models/layers/layer_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

namespace lockstep {
namespace {

// The layers `max_pool` and `avg_pool: {kernel: 2, stride: as kernel, padding: 0}`, also written `max_pool: 2`.

/// A window goes over each channel. max_pool takes the largest number of each, and backward sends the gradient to where
/// it was; avg_pool takes the mean, in which padding counts as zeros.
class WindowPoolLayer final : public Layer {
 public:
  /// @param shape  with batch 1
  WindowPoolLayer(const LayerPlace& place, bool is_max, const Pool2dShape& shape)
      : Layer(place, {shape.channels, shape.out_height(), shape.out_width()}),
        is_max_(is_max),
        shape_(shape) {}
  /// @throws ConfigError, ShapeError  if an option is wrong or the window is larger than the padded image
  template <bool kIsMax>
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const ImageShape& input = place.input;
    Pool2dShape shape{
        .batch = 1, .channels = input.channels, .in_height = input.height, .in_width = input.width};
    shape.kernel = options.integer("kernel", 1, kMaxPoolKernel, 2);
    shape.stride = options.integer("stride", 1, kMaxKernel, shape.kernel);
    shape.padding = options.integer("padding", 0, shape.kernel / 2, 0);
    options.require_fit({shape.kernel, shape.kernel}, shape.padding, input);
    return std::make_unique<WindowPoolLayer>(place, kIsMax, shape);
  }

  /// "max_pool 3 stride 2 padding 1"; a stride equal to the kernel is left out.
  std::string describe() const override {
    std::string text = fmt::format("{} {}", is_max_ ? "max_pool" : "avg_pool", shape_.kernel);
    if (shape_.stride != shape_.kernel) text += fmt::format(" stride {}", shape_.stride);
    if (shape_.padding != 0) text += fmt::format(" padding {}", shape_.padding);
    return text;
  }
  LayerOp op() const override { return is_max_ ? LayerOp(MaxPoolOp{shape_}) : LayerOp(AvgPoolOp{shape_}); }
  bool is_channelwise() const override { return true; }
  ImagePart reads_for(const ImagePart& of_output) const override {
    const auto pixels = [&](int windows, int image) {
      return std::min(image, (windows - 1) * shape_.stride + shape_.kernel - shape_.padding);
    };
    return {pixels(of_output.height, shape_.in_height), pixels(of_output.width, shape_.in_width)};
  }
  std::size_t saved_bytes(int batch) const override { return is_max_ ? shape_of(batch).out_size() : 0; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_max_) return cpu::max_pool_forward(shape_of(pass), tensors.x, tensors.y, tensors.saved);
    cpu::avg_pool_forward(shape_of(pass), tensors.x, tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_max_) return cpu::max_pool_backward(shape_of(pass), tensors.dy, tensors.saved, tensors.dx);
    cpu::avg_pool_backward(shape_of(pass), tensors.dy, tensors.dx);
  }
  /// An epilogue has pools of 2 x 2 side by side; others are separate stages.
  DeviceForm device_form() const override {
    const bool halves = shape_.kernel == 2 && shape_.stride == 2 && shape_.padding == 0;
    if (!halves) return {};
    return DeviceForm::epilogue_step({.kind = is_max_ ? EpilogueKind::kMaxPool : EpilogueKind::kAvgPool}, 2);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    const Pool2dShape shape = shape_of(pass.batch);
    if (is_max_) return pass.ops.max_pool_forward(pass.stream, shape, tensors.x, tensors.y, tensors.saved);
    pass.ops.avg_pool_forward(pass.stream, shape, tensors.x, tensors.y);
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    const Pool2dShape shape = shape_of(pass.batch);
    if (is_max_) return pass.ops.max_pool_backward(pass.stream, shape, tensors.dy, tensors.saved, tensors.dx);
    pass.ops.avg_pool_backward(pass.stream, shape, tensors.dy, tensors.dx);
  }

 private:
  Pool2dShape shape_of(int batch) const { return with_batch(shape_, batch); }
  Pool2dShape shape_of(const LayerPass& pass) const {
    Pool2dShape shape = shape_of(pass.batch);
    shape.channels = pass.channels.of(shape.channels);
    return shape;
  }

  bool is_max_;
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
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const ImageShape& input = place.input;
    const int side = options.integer("out", 1, kMaxKernel);
    return std::make_unique<AdaptiveAvgPoolLayer>(
        place, AdaptivePoolShape{1, input.channels, input.height, input.width, side, side});
  }

  std::string describe() const override { return fmt::format("adaptive_avg_pool {}", shape_.out_height); }
  LayerOp op() const override { return AdaptiveAvgPoolOp{shape_}; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::adaptive_avg_pool_forward(shape_of(pass.batch), tensors.x, tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::adaptive_avg_pool_backward(shape_of(pass.batch), tensors.dy, tensors.dx);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.adaptive_avg_pool_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.y);
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.adaptive_avg_pool_backward(pass.stream, shape_of(pass.batch), tensors.dy, tensors.dx);
  }

 private:
  AdaptivePoolShape shape_of(int batch) const { return with_batch(shape_, batch); }

  AdaptivePoolShape shape_;
};

// The layer `global_avg_pool`.

/// The mean of each channel: an image of any size becomes [channels, 1, 1].
class GlobalAvgPoolLayer final : public Layer {
 public:
  explicit GlobalAvgPoolLayer(const LayerPlace& place) : Layer(place, {place.input.channels, 1, 1}) {}

  std::string describe() const override { return "global_avg_pool"; }
  LayerOp op() const override { return GlobalAvgPoolOp{input()}; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::global_avg_pool_forward(input(), pass.batch, tensors.x, tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::global_avg_pool_backward(input(), pass.batch, tensors.dy, tensors.dx);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.global_avg_pool_forward(pass.stream, input(), pass.batch, tensors.x, tensors.y);
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.global_avg_pool_backward(pass.stream, input(), pass.batch, tensors.dy, tensors.dx);
  }
};

}  // namespace

std::vector<LayerKind> pool_kinds() {
  return {
      {"max_pool", "pool", "kernel", {"name", "kernel", "stride", "padding"}, WindowPoolLayer::make<true>},
      {"avg_pool", "pool", "kernel", {"name", "kernel", "stride", "padding"}, WindowPoolLayer::make<false>},
      {"global_avg_pool", "pool", "", {"name"}, make_without_options<GlobalAvgPoolLayer>},
      {"adaptive_avg_pool", "pool", "out", {"name", "out"}, AdaptiveAvgPoolLayer::make},
  };
}

}  // namespace lockstep
