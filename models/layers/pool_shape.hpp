// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What max_pool and avg_pool have in common: their options and shapes.
#pragma once

#include "kernels/shapes.hpp"
#include "models/device_layer.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <string>
#include <string_view>

namespace lockstep {

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

}  // namespace lockstep
