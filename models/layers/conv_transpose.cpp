// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// ConvTranspose2dLayer: each direction is another one of the convolution from its output to its input.
#include "kernels/sum_cuts.hpp"
#include "models/layers/weighted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lockstep {

ConvTranspose2dLayer::ConvTranspose2dLayer(LayerPlace place, const Conv2dShape& convolution, bool has_bias)
    : WeightedLayer(std::move(place), {convolution.in_channels, convolution.in_height, convolution.in_width},
                    {convolution.out_channels, convolution.group_inputs(), convolution.kernel_height,
                     convolution.kernel_width},
                    has_bias),
      convolution_(convolution) {}

std::unique_ptr<Layer> ConvTranspose2dLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const KernelSize kernel = options.kernel();
  Conv2dShape shape;
  shape.batch = 1;
  shape.in_channels = options.outputs();
  shape.out_channels = place.input.channels;
  shape.kernel_height = kernel.height;
  shape.kernel_width = kernel.width;
  shape.stride = options.integer("stride", 1, kMaxKernel, 1);
  shape.groups = options.common_divisor("groups", shape.out_channels, shape.in_channels);
  shape.dilation = options.integer("dilation", 1, kMaxKernel, 1);
  shape.padding = options.integer("padding", 0, std::min(shape.reach_height(), shape.reach_width()) - 1, 0);
  const int output_padding = options.integer("output_padding", 0, kMaxKernel, 0);
  if (output_padding >= shape.stride)
    options.fail_shape(fmt::format(
        "output_padding {} is not smaller than stride {}, so that its pixels are of no input; use a "
        "smaller output_padding or a larger stride",
        output_padding, shape.stride));
  const auto side = [&](int inputs, int reach) {
    const std::int64_t size =
        (std::int64_t{inputs} - 1) * shape.stride + reach - 2 * shape.padding + output_padding;
    return static_cast<int>(std::min(size, static_cast<std::int64_t>(kMaxFeatures) + 1));  // which is refused
  };
  shape.in_height = side(place.input.height, shape.reach_height());
  shape.in_width = side(place.input.width, shape.reach_width());
  if (std::min(shape.in_height, shape.in_width) < 1)
    options.fail_shape(
        fmt::format("padding {} leaves nothing of what an input of {} becomes; use less padding",
                    shape.padding, to_string(place.input)));
  options.require_weights(
      checked_product(shape.out_channels, shape.group_inputs(), kernel.height, kernel.width));
  return std::make_unique<ConvTranspose2dLayer>(place, shape, options.yes_or_no("bias", true));
}

std::string ConvTranspose2dLayer::describe() const {
  return convolution_in_words("conv_transpose2d", convolution_.in_channels, convolution_,
                              ConvTransposeOp{convolution_}.output_padding()) +
         bias_in_words();
}

std::uint64_t ConvTranspose2dLayer::scratch_numbers(int columns) const {
  const int terms = gradient_terms(columns);
  return checked_sum(convolution_scratch(convolution_, columns, terms, parameter_size()), missing_bias(),
                     checked_product(terms - 1, parameter_size()), stand_in_numbers(1));
}

std::size_t ConvTranspose2dLayer::missing_bias() const {
  return static_cast<std::size_t>(std::max(convolution_.in_channels, convolution_.out_channels));
}

void ConvTranspose2dLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::conv2d_backward_data(convolution_of(pass.batch), tensors.x, tensors.weights, bias(tensors), tensors.y);
}

int ConvTranspose2dLayer::gradient_terms(int grain) const {
  const int of_bias = has_bias() ? GradientSplit(bias_sums(1), grain).terms : 1;
  return std::max(GradientSplit(convolution_, grain).terms, of_bias);
}

void ConvTranspose2dLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  const int terms = gradient_terms(pass.grain);
  const std::size_t stride = tensors.term_stride;
  const auto fill_up = [&](float* gradient, std::size_t size, const GradientSplit& split) {
    for (int t = split.terms; t < terms; ++t)
      std::fill_n(gradient + static_cast<std::size_t>(t) * stride, size, 0.0F);
  };
  float* const unread = unread_terms(missing_bias(), stride, terms);
  const GradientSplit split(convolution_, pass.grain);
  cpu::conv2d_backward_weights(convolution_of(pass.batch), split, tensors.dy, tensors.x,
                               {tensors.gradients, unread, stride});
  fill_up(tensors.gradients, weight_size(), split);
  if (!has_bias()) return;
  const GradientSplit of_bias(bias_sums(1), pass.grain);
  float* const bias = tensors.gradients + weight_size();
  cpu::conv2d_backward_weights(bias_sums(pass.batch), of_bias, tensors.dy, tensors.dy,
                               {unread, bias, stride});
  fill_up(bias, static_cast<std::size_t>(output().channels), of_bias);
}

void ConvTranspose2dLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::conv2d_forward(convolution_of(pass.batch), tensors.dy, tensors.weights, nullptr, tensors.dx);
}

std::optional<std::string> ConvTranspose2dLayer::beyond_device() const {
  const Conv2dShape& s = convolution_;
  if (std::max({s.in_channels, s.out_channels, s.in_height}) <= kMaxDeviceSide) return {};
  return fmt::format("a transposed convolution of {} channels into {} of height {}", s.out_channels,
                     s.in_channels, s.in_height);
}

void ConvTranspose2dLayer::device_forward(const DeviceLayerPass& pass,
                                          const DeviceLayerTensors& tensors) const {
  pass.ops.conv2d_backward_data(pass.stream, convolution_of(pass.batch), tensors.x, tensors.weights,
                                device_bias(tensors), nullptr, tensors.y);
}

void ConvTranspose2dLayer::device_backward_weights(const DeviceLayerPass& pass,
                                                   const DeviceLayerTensors& tensors) const {
  pass.ops.conv2d_backward_weights(pass.stream, convolution_of(pass.batch), tensors.grain, tensors.dy,
                                   tensors.x, {tensors.gradients[0], tensors.unread_gradient});
  if (!has_bias()) return;
  pass.ops.conv2d_backward_weights(pass.stream, bias_sums(pass.batch), tensors.grain, tensors.dy, tensors.dy,
                                   {tensors.unread_gradient, tensors.gradients[1]});
}

void ConvTranspose2dLayer::device_backward_data(const DeviceLayerPass& pass,
                                                const DeviceLayerTensors& tensors) const {
  pass.ops.conv2d_forward(pass.stream, convolution_of(pass.batch), tensors.dy, tensors.weights,
                          tensors.zero_bias, {}, nullptr, tensors.dx, nullptr);
}

Conv2dShape ConvTranspose2dLayer::convolution_of(int batch) const {
  Conv2dShape shape = convolution_;
  shape.batch = batch;
  return shape;
}

Conv2dShape ConvTranspose2dLayer::bias_sums(int batch) const {
  const ImageShape& y = output();
  return {.batch = batch,
          .in_channels = y.channels,
          .in_height = y.height,
          .in_width = y.width,
          .out_channels = y.channels,
          .kernel_height = 1,
          .kernel_width = 1,
          .groups = y.channels};
}

}  // namespace lockstep
