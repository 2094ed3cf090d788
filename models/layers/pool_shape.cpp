// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Options and shapes of pooling layers.
#include "models/layers/pool_shape.hpp"

#include "models/limits.hpp"

#include <fmt/format.h>

namespace lockstep {

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

}  // namespace lockstep
