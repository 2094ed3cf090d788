// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// conv2d and conv_transpose2d. The latter's passes are those of a convolution, each in another's place.
#include "common/buffers.hpp"
#include "common/text_layout.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/sum_cuts.hpp"
#include "models/layers/layer_kinds.hpp"
#include "models/layers/weighted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace lockstep {
namespace {

// Helpers of both convolutions.

/// "conv2d 10@5x5 stride 2": of the options those that are not the defaults.
std::string convolution_in_words(const char* kind, int outputs, const Conv2dShape& s,
                                 int output_padding = 0) {
  std::string text = fmt::format("{} {}@{}x{}", kind, outputs, s.kernel_height, s.kernel_width);
  if (s.stride != 1) text += fmt::format(" stride {}", s.stride);
  if (s.padding != 0) text += fmt::format(" padding {}", s.padding);
  if (output_padding != 0) text += fmt::format(" output_padding {}", output_padding);
  if (s.dilation != 1) text += fmt::format(" dilation {}", s.dilation);
  if (s.groups != 1) text += fmt::format(" groups {}", s.groups);
  return text;
}

/// Numbers that the kernels of a convolution keep. They are its input in a frame of zeros, or what a stride leaves of
/// it, its filters in another order, the places of its taps, the terms of its gradient, a part of dy. For 1x1 filters
/// also what a tile reads, and with a stride what the pixels of a row read.
/// @param parameters  number of the layer's parameters
std::uint64_t convolution_scratch(const Conv2dShape& s, int columns, int terms, std::size_t parameters) {
  constexpr int kPacked = 208 * 1024, kPlace = sizeof(std::size_t) / sizeof(float), kWindow = 64,
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

/// The options that both kinds have, as a convolution of batch 1. @param is_transposed  its input is the layer's output
/// @throws ConfigError  if an option is wrong
Conv2dShape read_convolution(const LayerOptions& options, const LayerPlace& place, bool is_transposed) {
  const KernelSize kernel = options.kernel();
  Conv2dShape shape{.batch = 1,
                    .in_channels = place.input.channels,
                    .out_channels = options.outputs(),
                    .kernel_height = kernel.height,
                    .kernel_width = kernel.width};
  shape.stride = options.integer("stride", 1, kMaxKernel, 1);
  shape.groups = options.common_divisor("groups", shape.in_channels, shape.out_channels);
  shape.dilation = options.integer("dilation", 1, kMaxKernel, 1);
  shape.padding = options.integer("padding", 0, std::min(shape.reach_height(), shape.reach_width()) - 1, 0);
  if (is_transposed) std::swap(shape.in_channels, shape.out_channels);
  return shape;
}

/// @throws ShapeError  there are too many
void require_filters(const LayerOptions& options, const Conv2dShape& s) {
  options.require_weights(checked_product(s.out_channels, s.group_inputs(), s.kernel_height, s.kernel_width));
}

// The layer `conv2d: {out, kernel, stride: 1, padding: 0, dilation: 1, groups: 1, bias: true}`.

/// A two-dimensional convolution; NAME.weight [out, in / groups, height, width], NAME.bias [out].
class Conv2dLayer final : public WeightedLayer {
 public:
  /// @param shape  with batch 1
  Conv2dLayer(LayerPlace place, const Conv2dShape& shape, bool has_bias)
      : WeightedLayer(std::move(place), {shape.out_channels, shape.out_height(), shape.out_width()},
                      {shape.out_channels, shape.group_inputs(), shape.kernel_height, shape.kernel_width},
                      has_bias),
        shape_(shape) {}
  /// @throws ConfigError, ShapeError  if an option is wrong or the kernel is larger than the padded image
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    Conv2dShape shape = read_convolution(options, place, /*is_transposed=*/false);
    shape.in_height = place.input.height;
    shape.in_width = place.input.width;
    options.require_fit({shape.kernel_height, shape.kernel_width}, shape.padding, place.input,
                        shape.dilation);
    require_filters(options, shape);
    return std::make_unique<Conv2dLayer>(place, shape, options.yes_or_no("bias", true));
  }

  std::string describe() const override {
    return convolution_in_words("conv2d", shape_.out_channels, shape_) + bias_in_words();
  }
  LayerOp op() const override { return shape_; }
  double flops_per_sample() const override { return shape_.flops(); }
  double needed_flops_per_sample(const ImagePart& of_output) const override {
    Conv2dShape shape = shape_;
    shape.read = of_output;
    return cpu::conv2d_flops(shape);
  }
  std::uint64_t scratch_numbers(int columns) const override {
    if (is_int16()) return cpu::int16::scratch_numbers(shape_, columns);
    const int terms = gradient_terms(columns);
    return checked_sum(convolution_scratch(shape_, columns, terms, parameter_size()),
                       stand_in_numbers(terms));
  }
  /// False with padding, where each call of the gradient copies the input, or where a unit is of all channels.
  bool splits_outputs() const override { return shape_.padding == 0 && shape_.groups == 1 && !is_int16(); }
  ImagePart reads_for(const ImagePart& of_output) const override {
    const auto pixels = [&](int outputs, int reach, int image) {
      return std::min(image, (outputs - 1) * shape_.stride + reach - shape_.padding);
    };
    return {pixels(of_output.height, shape_.reach_height(), shape_.in_height),
            pixels(of_output.width, shape_.reach_width(), shape_.in_width)};
  }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return cpu::int16::conv2d_forward(shape_of(pass, tensors), pass.samples, operand_x(tensors),
                                        tensors.weights, bias(tensors), tensors.y);
    cpu::conv2d_forward(shape_of(pass, tensors), tensors.x, tensors.weights + weights_before(pass),
                        bias(tensors) + pass.channels.first, tensors.y);
  }
  int gradient_terms(int grain) const override { return is_int16() ? 1 : GradientSplit(shape_, grain).terms; }
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return int16_backward_weights(shape_of(pass, tensors), pass, tensors, operand_x(tensors),
                                    operand_dy(tensors));
    cpu::conv2d_backward_weights(
        shape_of(pass, tensors), GradientSplit(shape_, pass.grain), tensors.x, tensors.dy,
        {tensors.gradients + weights_before(pass),
         bias_gradient(tensors, gradient_terms(pass.grain)) + pass.channels.first, tensors.term_stride});
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    Conv2dShape shape = shape_of(pass.batch);
    shape.read = tensors.read;
    if (is_int16())
      return cpu::int16::conv2d_backward_data(shape, pass.samples, operand_dy(tensors), tensors.weights,
                                              nullptr, tensors.dx);
    cpu::conv2d_backward_data(shape, tensors.dy, tensors.weights, nullptr, tensors.dx);
  }
  DeviceForm device_form() const override {
    return {.takes_epilogue = true, .stores_through = DeviceForm::StoresThrough::kSameShape};
  }
  std::optional<std::string> beyond_device() const override {
    if (std::max({shape_.in_channels, shape_.out_channels, shape_.in_height}) <= kMaxDeviceSide) return {};
    return fmt::format("a convolution of {} of height {} into {}", counted(shape_.in_channels, "channel"),
                       shape_.in_height, shape_.out_channels);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.conv2d_forward(pass.stream, shape_of(pass.batch), tensors.x, tensors.weights,
                            device_bias(tensors), *tensors.epilogue, tensors.state, tensors.y, tensors.mask);
  }
  void device_backward_weights(const DeviceLayerPass& pass,
                               const DeviceLayerTensors& tensors) const override {
    pass.ops.conv2d_backward_weights(pass.stream, shape_before(*tensors.epilogue, pass.batch), tensors.grain,
                                     tensors.x, tensors.dy, device_gradient(tensors));
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.conv2d_backward_data(pass.stream, shape_before(*tensors.epilogue, pass.batch), tensors.dy,
                                  tensors.weights, nullptr, tensors.through, tensors.dx);
  }

 private:
  Conv2dShape shape_of(int batch) const { return with_batch(shape_, batch); }
  Conv2dShape shape_before(const Epilogue& epilogue, int batch) const {
    Conv2dShape shape = shape_of(batch);
    const auto with_windows = [&](int size) { return size / epilogue.pool * epilogue.pool; };
    shape.read = {with_windows(shape.out_height()), with_windows(shape.out_width())};
    return shape;
  }
  /// Shape for the pass's channels.
  Conv2dShape shape_of(const LayerPass& pass, const LayerTensors& tensors) const {
    Conv2dShape shape = shape_of(pass.batch);
    shape.out_channels = pass.channels.of(shape.out_channels);
    shape.read = tensors.read;
    return shape;
  }
  /// Weights before those of the pass's channels.
  std::size_t weights_before(const LayerPass& pass) const {
    return weight_size() / static_cast<std::size_t>(shape_.out_channels) *
           static_cast<std::size_t>(pass.channels.first);
  }

  Conv2dShape shape_;
};

// The layer `conv_transpose2d: {out, kernel, stride: 1, padding: 0, output_padding: 0, dilation: 1, groups: 1, bias:
// true}`.

/// A transposed convolution. Each pixel of x adds a filter to y. NAME.weight [in, out / groups, height, width],
/// NAME.bias [out]. All directions are those of the convolution from y to x (docs/arithmetic.md).
class ConvTranspose2dLayer final : public WeightedLayer {
 public:
  /// @param convolution  from this layer's output to its input, with batch 1
  ConvTranspose2dLayer(LayerPlace place, const Conv2dShape& convolution, bool has_bias)
      : WeightedLayer(std::move(place),
                      {convolution.in_channels, convolution.in_height, convolution.in_width},
                      {convolution.out_channels, convolution.group_inputs(), convolution.kernel_height,
                       convolution.kernel_width},
                      has_bias),
        convolution_(convolution) {}
  /// @throws ConfigError, ShapeError  if an option is wrong or the output is empty or too large
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    Conv2dShape shape = read_convolution(options, place, /*is_transposed=*/true);
    const int output_padding = options.integer("output_padding", 0, kMaxKernel, 0);
    if (output_padding >= shape.stride)
      options.fail_shape(fmt::format(
          "output_padding {} is not smaller than stride {}, so some pixels would have no input; use a "
          "smaller output_padding or a larger stride",
          output_padding, shape.stride));
    const auto side = [&](int inputs, int reach) {
      const std::int64_t size =
          (std::int64_t{inputs} - 1) * shape.stride + reach - 2 * shape.padding + output_padding;
      return static_cast<int>(
          std::min(size, static_cast<std::int64_t>(kMaxFeatures) + 1));  // a larger one is refused
    };
    shape.in_height = side(place.input.height, shape.reach_height());
    shape.in_width = side(place.input.width, shape.reach_width());
    if (std::min(shape.in_height, shape.in_width) < 1)
      options.fail_shape(
          fmt::format("padding {} leaves nothing of what an input of {} becomes; use less padding",
                      shape.padding, to_string(place.input)));
    require_filters(options, shape);
    return std::make_unique<ConvTranspose2dLayer>(place, shape, options.yes_or_no("bias", true));
  }

  std::string describe() const override {
    return convolution_in_words("conv_transpose2d", convolution_.in_channels, convolution_,
                                ConvTransposeOp{convolution_}.output_padding()) +
           bias_in_words();
  }
  LayerOp op() const override { return ConvTransposeOp{convolution_}; }
  double flops_per_sample() const override { return convolution_.flops(); }
  double needed_flops_per_sample(const ImagePart& /*of_output*/) const override {
    return cpu::conv2d_flops(convolution_);
  }
  std::uint64_t scratch_numbers(int columns) const override {
    if (is_int16()) return cpu::int16::scratch_numbers(convolution_, columns);
    const int terms = gradient_terms(columns);
    return checked_sum(convolution_scratch(convolution_, columns, terms, parameter_size()), missing_bias(),
                       checked_product(terms - 1, parameter_size()), stand_in_numbers(1));
  }
  /// The convolution's bias, or the filters of bias_sums(), whichever are more.
  std::size_t missing_bias() const override {
    return static_cast<std::size_t>(std::max(convolution_.in_channels, convolution_.out_channels));
  }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return cpu::int16::conv2d_backward_data(convolution_of(pass.batch), pass.samples, operand_x(tensors),
                                              tensors.weights, bias(tensors), tensors.y);
    cpu::conv2d_backward_data(convolution_of(pass.batch), tensors.x, tensors.weights, bias(tensors),
                              tensors.y);
  }
  int gradient_terms(int grain) const override {
    if (is_int16()) return 1;
    const int of_bias = has_bias() ? GradientSplit(bias_sums(1), grain).terms : 1;
    return std::max(GradientSplit(convolution_, grain).terms, of_bias);
  }
  void backward_weights(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return int16_backward_weights(convolution_of(pass.batch), pass, tensors, operand_dy(tensors),
                                    operand_x(tensors));
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
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    if (is_int16())
      return cpu::int16::conv2d_forward(convolution_of(pass.batch), pass.samples, operand_dy(tensors),
                                        tensors.weights, nullptr, tensors.dx);
    cpu::conv2d_forward(convolution_of(pass.batch), tensors.dy, tensors.weights, nullptr, tensors.dx);
  }
  std::optional<std::string> beyond_device() const override {
    const Conv2dShape& s = convolution_;
    if (std::max({s.in_channels, s.out_channels, s.in_height}) <= kMaxDeviceSide) return {};
    return fmt::format("a transposed convolution of {} into {} of height {}",
                       counted(s.out_channels, "channel"), s.in_channels, s.in_height);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.conv2d_backward_data(pass.stream, convolution_of(pass.batch), tensors.x, tensors.weights,
                                  device_bias(tensors), nullptr, tensors.y);
  }
  void device_backward_weights(const DeviceLayerPass& pass,
                               const DeviceLayerTensors& tensors) const override {
    pass.ops.conv2d_backward_weights(pass.stream, convolution_of(pass.batch), tensors.grain, tensors.dy,
                                     tensors.x, {tensors.gradients[0], tensors.unread_gradient});
    if (!has_bias()) return;
    pass.ops.conv2d_backward_weights(pass.stream, bias_sums(pass.batch), tensors.grain, tensors.dy,
                                     tensors.dy, {tensors.unread_gradient, tensors.gradients[1]});
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.conv2d_forward(pass.stream, convolution_of(pass.batch), tensors.dy, tensors.weights,
                            tensors.zero_bias, {}, nullptr, tensors.dx, nullptr);
  }

 private:
  Conv2dShape convolution_of(int batch) const { return with_batch(convolution_, batch); }
  /// A 1x1 convolution of each channel of y by itself: the gradient of its bias is this layer's.
  Conv2dShape bias_sums(int batch) const {
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

  Conv2dShape convolution_;
};

}  // namespace

std::vector<LayerKind> convolution_kinds() {
  return {
      {"conv2d",
       "conv",
       "",
       {"name", "out", "kernel", "stride", "padding", "dilation", "groups", "bias"},
       Conv2dLayer::make},
      {"conv_transpose2d",
       "conv",
       "",
       {"name", "out", "kernel", "stride", "padding", "output_padding", "dilation", "groups", "bias"},
       ConvTranspose2dLayer::make},
  };
}

}  // namespace lockstep
