// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pooling: options, shapes, and the calls of ops.
#include "models/layers/pools.hpp"

#include "models/layer_options.hpp"

#include <fmt/format.h>

#include <utility>

namespace lockstep {

// Options and shapes of pooling layers.

Pool2dShape read_pool_shape(const LayerOptions& options, const ImageShape& input) {
  Pool2dShape shape;
  shape.batch = 1;
  shape.channels = input.channels;
  shape.in_height = input.height;
  shape.in_width = input.width;
  shape.kernel = options.integer("kernel", 1, kMaxPoolKernel, 2);
  shape.stride = options.integer("stride", 1, kMaxKernel, shape.kernel);
  shape.padding = options.integer("padding", 0, shape.kernel / 2, 0);
  options.require_fit({shape.kernel, shape.kernel}, shape.padding, input);
  return shape;
}

Pool2dShape with_batch(Pool2dShape shape, int batch) {
  shape.batch = batch;
  return shape;
}

Pool2dShape with_channels(Pool2dShape shape, const ChannelRange& channels) {
  shape.channels = channels.of(shape.channels);
  return shape;
}

ImageShape pool_output(const Pool2dShape& shape) {
  return {shape.channels, shape.out_height(), shape.out_width()};
}

DeviceForm device_form_of_pool(const Pool2dShape& shape, EpilogueKind kind) {
  const bool halves = shape.kernel == 2 && shape.stride == 2 && shape.padding == 0;
  return halves ? DeviceForm::epilogue_step({.kind = kind}, 2) : DeviceForm{};
}

std::string describe_pool(std::string_view kind, const Pool2dShape& shape) {
  std::string text = fmt::format("{} {}", kind, shape.kernel);
  if (shape.stride != shape.kernel) text += fmt::format(" stride {}", shape.stride);
  if (shape.padding != 0) text += fmt::format(" padding {}", shape.padding);
  return text;
}

// MaxPoolLayer: options, shapes, and the calls of its ops.

MaxPoolLayer::MaxPoolLayer(LayerPlace place, const Pool2dShape& shape)
    : Layer(std::move(place), pool_output(shape)), shape_(shape) {}

std::unique_ptr<Layer> MaxPoolLayer::make(const LayerOptions& options, const LayerPlace& place) {
  return std::make_unique<MaxPoolLayer>(place, read_pool_shape(options, place.input));
}

std::string MaxPoolLayer::describe() const {
  return describe_pool("max_pool", shape_);
}

void MaxPoolLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::max_pool_forward(shape_of(pass), tensors.x, tensors.y, tensors.saved);
}

void MaxPoolLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::max_pool_backward(shape_of(pass), tensors.dy, tensors.saved, tensors.dx);
}

DeviceForm MaxPoolLayer::device_form() const {
  return device_form_of_pool(shape_, EpilogueKind::kMaxPool);
}

void MaxPoolLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.max_pool_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.y, tensors.saved);
}

void MaxPoolLayer::device_backward_data(const DeviceLayerPass& pass,
                                        const DeviceLayerTensors& tensors) const {
  pass.ops.max_pool_backward(pass.stream, shape_of(pass.batch), tensors.dy, tensors.saved, tensors.dx);
}

// AvgPoolLayer: options, shapes, and the calls of its ops.

AvgPoolLayer::AvgPoolLayer(LayerPlace place, const Pool2dShape& shape)
    : Layer(std::move(place), pool_output(shape)), shape_(shape) {}

std::unique_ptr<Layer> AvgPoolLayer::make(const LayerOptions& options, const LayerPlace& place) {
  return std::make_unique<AvgPoolLayer>(place, read_pool_shape(options, place.input));
}

std::string AvgPoolLayer::describe() const {
  return describe_pool("avg_pool", shape_);
}

void AvgPoolLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::avg_pool_forward(shape_of(pass), tensors.x, tensors.y);
}

void AvgPoolLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::avg_pool_backward(shape_of(pass), tensors.dy, tensors.dx);
}

DeviceForm AvgPoolLayer::device_form() const {
  return device_form_of_pool(shape_, EpilogueKind::kAvgPool);
}

void AvgPoolLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.avg_pool_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.y);
}

void AvgPoolLayer::device_backward_data(const DeviceLayerPass& pass,
                                        const DeviceLayerTensors& tensors) const {
  pass.ops.avg_pool_backward(pass.stream, shape_of(pass.batch), tensors.dy, tensors.dx);
}

// AdaptiveAvgPoolLayer: its option, and the calls of its ops.

std::unique_ptr<Layer> AdaptiveAvgPoolLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const ImageShape& input = place.input;
  const int side = options.integer("out", 1, kMaxKernel);
  return std::make_unique<AdaptiveAvgPoolLayer>(
      place, AdaptivePoolShape{1, input.channels, input.height, input.width, side, side});
}

std::string AdaptiveAvgPoolLayer::describe() const {
  return fmt::format("adaptive_avg_pool {}", shape_.out_height);
}

AdaptivePoolShape AdaptiveAvgPoolLayer::shape_of(int batch) const {
  AdaptivePoolShape shape = shape_;
  shape.batch = batch;
  return shape;
}

void AdaptiveAvgPoolLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::adaptive_avg_pool_forward(shape_of(pass.batch), tensors.x, tensors.y);
}

void AdaptiveAvgPoolLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::adaptive_avg_pool_backward(shape_of(pass.batch), tensors.dy, tensors.dx);
}

void AdaptiveAvgPoolLayer::device_forward(const DeviceLayerPass& pass,
                                          const DeviceLayerTensors& tensors) const {
  pass.ops.adaptive_avg_pool_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.y);
}

void AdaptiveAvgPoolLayer::device_backward_data(const DeviceLayerPass& pass,
                                                const DeviceLayerTensors& tensors) const {
  pass.ops.adaptive_avg_pool_backward(pass.stream, shape_of(pass.batch), tensors.dy, tensors.dx);
}

// GlobalAvgPoolLayer: the calls of its ops.

std::unique_ptr<Layer> GlobalAvgPoolLayer::make(const LayerOptions& /*options*/, const LayerPlace& place) {
  return std::make_unique<GlobalAvgPoolLayer>(place);
}

void GlobalAvgPoolLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::global_avg_pool_forward(input(), pass.batch, tensors.x, tensors.y);
}

void GlobalAvgPoolLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::global_avg_pool_backward(input(), pass.batch, tensors.dy, tensors.dx);
}

void GlobalAvgPoolLayer::device_forward(const DeviceLayerPass& pass,
                                        const DeviceLayerTensors& tensors) const {
  pass.ops.global_avg_pool_forward(pass.stream, input(), pass.batch, tensors.x, tensors.y);
}

void GlobalAvgPoolLayer::device_backward_data(const DeviceLayerPass& pass,
                                              const DeviceLayerTensors& tensors) const {
  pass.ops.global_avg_pool_backward(pass.stream, input(), pass.batch, tensors.dy, tensors.dx);
}

}  // namespace lockstep
