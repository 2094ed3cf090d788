// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Conv2dLayer: options, shapes, and the calls of its ops.
#include "models/layers/conv2d.hpp"

#include "common/checked_size.hpp"
#include "models/limits.hpp"

#include <fmt/format.h>

namespace lockstep {

Conv2dLayer::Conv2dLayer(LayerPlace place, const Conv2dShape& shape)
    : Layer(std::move(place), {shape.out_channels, shape.out_height(), shape.out_width()}), shape_(shape) {
  add_weight_and_bias({shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width},
                      shape.in_channels * shape.kernel_height * shape.kernel_width);
}

std::unique_ptr<Layer> Conv2dLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const KernelSize kernel = options.kernel();
  Conv2dShape shape;
  shape.batch = 1;
  shape.in_channels = place.input.channels;
  shape.in_height = place.input.height;
  shape.in_width = place.input.width;
  shape.out_channels = options.outputs();
  shape.kernel_height = kernel.height;
  shape.kernel_width = kernel.width;
  shape.stride = options.integer("stride", 1, kMaxKernel, 1);
  shape.padding = options.integer("padding", 0, std::min(kernel.height, kernel.width) - 1, 0);
  options.require_fit(kernel, shape.padding, place.input);
  options.require_weights(
      checked_product(shape.out_channels, shape.in_channels, kernel.height, kernel.width));
  return std::make_unique<Conv2dLayer>(place, shape);
}

std::string Conv2dLayer::describe() const {
  std::string text =
      fmt::format("conv2d {}@{}x{}", shape_.out_channels, shape_.kernel_height, shape_.kernel_width);
  if (shape_.stride != 1) text += fmt::format(" stride {}", shape_.stride);
  if (shape_.padding != 0) text += fmt::format(" padding {}", shape_.padding);
  return text;
}

void Conv2dLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.conv2d_forward(shape_of(pass.batch), tensors.x, tensors.weights,
                          tensors.weights + shape_.weight_size(), tensors.y);
}

void Conv2dLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.conv2d_backward_weights(shape_of(pass.batch), tensors.x, tensors.dy, tensors.gradients,
                                   tensors.gradients + shape_.weight_size());
}

void Conv2dLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.conv2d_backward_data(shape_of(pass.batch), tensors.dy, tensors.weights, tensors.dx);
}

Conv2dShape Conv2dLayer::shape_of(int batch) const {
  Conv2dShape shape = shape_;
  shape.batch = batch;
  return shape;
}

}  // namespace lockstep
