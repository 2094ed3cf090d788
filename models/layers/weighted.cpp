// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WeightedLayer: its tensors, and what stands in for a bias.
#include "models/layers/weighted.hpp"

#include "common/buffers.hpp"
#include "kernels/sum_cuts.hpp"
#include "models/layer_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace lockstep {

namespace {

/// Of the calling thread; they only grow.
thread_local std::vector<float> zero_bias, unread_gradient;

float* at_least(std::vector<float>& numbers, std::size_t size) {
  if (numbers.size() < size) numbers.resize(size);
  return numbers.data();
}

}  // namespace

WeightedLayer::WeightedLayer(LayerPlace place, const ImageShape& output, const std::vector<int>& weight_shape,
                             bool has_bias)
    : Layer(std::move(place), output),
      outputs_(static_cast<std::size_t>(output.channels)),
      has_bias_(has_bias) {
  const int fan_in = std::accumulate(weight_shape.begin() + 1, weight_shape.end(), 1, std::multiplies<>());
  add_weight(weight_shape, fan_in);
  if (has_bias) add_bias(output.channels, fan_in);
}

const float* WeightedLayer::bias(const LayerTensors& tensors) const {
  return has_bias_ ? tensors.weights + weight_size() : at_least(zero_bias, outputs_);
}

float* WeightedLayer::bias_gradient(const LayerTensors& tensors, int terms) const {
  if (has_bias_) return tensors.gradients + weight_size();
  return unread_terms(outputs_, tensors.term_stride, terms);
}

float* WeightedLayer::unread_terms(std::size_t size, std::size_t term_stride, int terms) {
  return at_least(unread_gradient, size + term_stride * static_cast<std::size_t>(terms - 1));
}

const float* WeightedLayer::device_bias(const DeviceLayerTensors& tensors) const {
  return has_bias_ ? tensors.weights + weight_size() : tensors.zero_bias;
}

ExactGradient WeightedLayer::device_gradient(const DeviceLayerTensors& tensors) const {
  return {tensors.gradients[0], has_bias_ ? tensors.gradients[1] : tensors.unread_gradient};
}

// Conv2dLayer: options, shapes, and the calls of its ops.

Conv2dLayer::Conv2dLayer(LayerPlace place, const Conv2dShape& shape, bool has_bias)
    : WeightedLayer(std::move(place), {shape.out_channels, shape.out_height(), shape.out_width()},
                    {shape.out_channels, shape.group_inputs(), shape.kernel_height, shape.kernel_width},
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
  shape.groups = options.common_divisor("groups", shape.in_channels, shape.out_channels);
  shape.dilation = options.integer("dilation", 1, kMaxKernel, 1);
  shape.padding = options.integer("padding", 0, std::min(shape.reach_height(), shape.reach_width()) - 1, 0);
  options.require_fit(kernel, shape.padding, place.input, shape.dilation);
  options.require_weights(
      checked_product(shape.out_channels, shape.group_inputs(), kernel.height, kernel.width));
  return std::make_unique<Conv2dLayer>(place, shape, options.yes_or_no("bias", true));
}

std::string convolution_in_words(const char* kind, int outputs, const Conv2dShape& s, int output_padding) {
  std::string text = fmt::format("{} {}@{}x{}", kind, outputs, s.kernel_height, s.kernel_width);
  if (s.stride != 1) text += fmt::format(" stride {}", s.stride);
  if (s.padding != 0) text += fmt::format(" padding {}", s.padding);
  if (output_padding != 0) text += fmt::format(" output_padding {}", output_padding);
  if (s.dilation != 1) text += fmt::format(" dilation {}", s.dilation);
  if (s.groups != 1) text += fmt::format(" groups {}", s.groups);
  return text;
}

std::uint64_t convolution_scratch(const Conv2dShape& s, int columns, int terms, std::size_t parameters) {
  constexpr int kPacked = 2 * 192 * 1024 / 4, kPlace = sizeof(std::size_t) / sizeof(float), kWindow = 64,
                kRows = 96 * 1024;
  const std::uint64_t padded =
      checked_product(s.group_inputs(), s.in_height + 2 * s.padding, s.in_width + 2 * s.padding, columns);
  const std::uint64_t taps = checked_product(s.group_inputs(), s.kernel_height, s.kernel_width);
  const bool is_pointwise = s.kernel_height == 1 && s.kernel_width == 1;
  const bool skips = is_pointwise && s.stride > 1;
  const std::uint64_t read = checked_product(s.group_inputs(), s.out_height(), s.out_width(), columns);
  const int window = is_pointwise ? kWindow * std::max(s.group_inputs(), s.group_outputs()) : 0;
  return checked_sum(s.padding > 0 ? padded : 0, s.weight_size(), checked_product(kPlace, taps),
                     terms > 1 ? checked_product(terms, parameters) : 0, kPacked, window, skips ? read : 0,
                     s.stride > 1 ? kRows : 0);
}

std::string Conv2dLayer::describe() const {
  return convolution_in_words("conv2d", shape_.out_channels, shape_) + bias_in_words();
}

std::uint64_t Conv2dLayer::scratch_numbers(int columns) const {
  const int terms = gradient_terms(columns);
  return checked_sum(convolution_scratch(shape_, columns, terms, parameter_size()), stand_in_numbers(terms));
}

int Conv2dLayer::gradient_terms(int grain) const {
  return GradientSplit(shape_, grain).terms;
}

void Conv2dLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::conv2d_forward(shape_of(pass), tensors.x, tensors.weights + weights_before(pass),
                      bias(tensors) + pass.channels.first, tensors.y);
}

void Conv2dLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::conv2d_backward_weights(
      shape_of(pass), GradientSplit(shape_, pass.grain), tensors.x, tensors.dy,
      {tensors.gradients + weights_before(pass),
       bias_gradient(tensors, gradient_terms(pass.grain)) + pass.channels.first, tensors.term_stride});
}

void Conv2dLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::conv2d_backward_data(shape_of(pass.batch), tensors.dy, tensors.weights, nullptr, tensors.dx);
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
  pass.ops.conv2d_backward_data(pass.stream, shape_of(pass.batch), tensors.dy, tensors.weights, nullptr,
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

// LinearLayer: options, shapes, and the calls of its ops.

LinearLayer::LinearLayer(const LayerPlace& place, int outputs, bool has_bias)
    : WeightedLayer(place, {outputs, 1, 1}, {outputs, place.input.features()}, has_bias) {}

std::unique_ptr<Layer> LinearLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const int outputs = options.outputs();
  options.require_weights(checked_product(outputs, place.input.features()));
  return std::make_unique<LinearLayer>(place, outputs, options.yes_or_no("bias", true));
}

std::string LinearLayer::describe() const {
  return fmt::format("linear {} -> {}{}", input().features(), output().channels, bias_in_words());
}

/// Its input, transposed, or a slice of its output.
std::uint64_t LinearLayer::scratch_numbers(int columns) const {
  return checked_sum(checked_product(std::max(input().features() + 16, output().features()), columns),
                     stand_in_numbers(1));
}

void LinearLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::linear_forward(shape_of(pass.batch), tensors.x, tensors.weights, bias(tensors), tensors.y);
}

void LinearLayer::backward_weights(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::linear_backward_weights(shape_of(pass.batch), tensors.x, tensors.dy, tensors.gradients,
                               bias_gradient(tensors, 1));
}

void LinearLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::linear_backward_data(shape_of(pass.batch), tensors.dy, tensors.weights, tensors.dx);
}

DeviceForm LinearLayer::device_form() const {
  return {.takes_epilogue = true, .stores_through = DeviceForm::StoresThrough::kAnyShape};
}

void LinearLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.linear_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.weights, device_bias(tensors),
                          *tensors.epilogue, tensors.state, tensors.y, tensors.mask);
}

void LinearLayer::device_backward_weights(const DeviceLayerPass& pass,
                                          const DeviceLayerTensors& tensors) const {
  pass.ops.linear_backward_weights(pass.stream, shape_of(pass.batch), tensors.grain, tensors.x, tensors.dy,
                                   device_gradient(tensors));
}

void LinearLayer::device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.linear_backward_data(pass.stream, shape_of(pass.batch), tensors.dy, tensors.weights,
                                tensors.through, tensors.dx);
}

}  // namespace lockstep
