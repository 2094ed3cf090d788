// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Conv2dLayer: options, shapes, and the calls of its ops.
#include "models/layers/conv2d.hpp"

#include "common/checked_size.hpp"
#include "kernels/numerics/sum_cuts.hpp"
#include "models/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

Conv2dLayer::Conv2dLayer(LayerPlace place, const Conv2dShape& shape, bool has_bias)
    : WeightedLayer(std::move(place), {shape.out_channels, shape.out_height(), shape.out_width()},
                    {shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width},
                    has_bias),
      shape_(shape) {}

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
  return std::make_unique<Conv2dLayer>(place, shape, options.yes_or_no("bias", true));
}

std::string Conv2dLayer::describe() const {
  std::string text =
      fmt::format("conv2d {}@{}x{}", shape_.out_channels, shape_.kernel_height, shape_.kernel_width);
  if (shape_.stride != 1) text += fmt::format(" stride {}", shape_.stride);
  if (shape_.padding != 0) text += fmt::format(" padding {}", shape_.padding);
  return text + bias_in_words();
}

/// Its input in a frame of zeros, its filters in another order, the places of its taps, the terms of its gradient, and a
/// part of dy.
std::uint64_t Conv2dLayer::scratch_numbers(int columns) const {
  constexpr int kPacked = 2 * 192 * 1024 / 4, kPlace = sizeof(std::size_t) / sizeof(float);
  const Conv2dShape& s = shape_;
  const std::uint64_t padded =
      checked_product(s.in_channels, s.in_height + 2 * s.padding, s.in_width + 2 * s.padding, columns);
  const std::uint64_t taps = checked_product(s.in_channels, s.kernel_height, s.kernel_width);
  const int terms = gradient_terms(columns);
  return checked_sum(s.padding > 0 ? padded : 0, s.weight_size(), checked_product(kPlace, taps),
                     terms > 1 ? checked_product(terms, parameter_size()) : 0, kPacked,
                     stand_in_numbers(terms));
}

int Conv2dLayer::gradient_terms(int grain) const {
  return GradientSplit(shape_, grain).terms;
}

void Conv2dLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.conv2d_forward(shape_of(pass), tensors.x, tensors.weights + weights_before(pass),
                          bias(tensors) + pass.channels.first, tensors.y);
}

void Conv2dLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.conv2d_backward_weights(
      shape_of(pass), GradientSplit(shape_, pass.grain), tensors.x, tensors.dy,
      {tensors.gradients + weights_before(pass),
       bias_gradient(tensors, gradient_terms(pass.grain)) + pass.channels.first, tensors.term_stride});
}

void Conv2dLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  pass.ops.conv2d_backward_data(shape_of(pass.batch), tensors.dy, tensors.weights, tensors.dx);
}

DeviceForm Conv2dLayer::device_form() const {
  return {.takes_epilogue = true, .stores_through = DeviceForm::StoresThrough::kSameShape};
}

std::optional<std::string> Conv2dLayer::beyond_device() const {
  if (std::max({shape_.in_channels, shape_.out_channels, shape_.in_height}) <= kMaxDeviceSide) return {};
  return fmt::format("a convolution of {} channels of height {} into {}", shape_.in_channels,
                     shape_.in_height, shape_.out_channels);
}

void Conv2dLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.conv2d_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.weights, device_bias(tensors),
                          *tensors.epilogue, tensors.state, tensors.y, tensors.mask);
}

void Conv2dLayer::device_backward_weights(const DeviceLayerPass& pass,
                                          const DeviceLayerTensors& tensors) const {
  pass.ops.conv2d_backward_weights(pass.stream, shape_of(pass.batch), tensors.grain, tensors.x, tensors.dy,
                                   device_gradient(tensors));
}

void Conv2dLayer::device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.conv2d_backward_data(pass.stream, shape_of(pass.batch), tensors.dy, tensors.weights,
                                tensors.through, tensors.dx);
}

Conv2dShape Conv2dLayer::shape_of(int batch) const {
  Conv2dShape shape = shape_;
  shape.batch = batch;
  return shape;
}

Conv2dShape Conv2dLayer::shape_of(const LayerPass& pass) const {
  Conv2dShape shape = shape_of(pass.batch);
  shape.out_channels = pass.channels.of(shape.out_channels);
  return shape;
}

std::size_t Conv2dLayer::weights_before(const LayerPass& pass) const {
  return weight_size() / static_cast<std::size_t>(shape_.out_channels) *
         static_cast<std::size_t>(pass.channels.first);
}

}  // namespace lockstep
