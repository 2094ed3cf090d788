// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers as plain numbers: for programs that run networks by other means than Layer::forward.
#pragma once

#include "kernels/shapes.hpp"

#include <cstdint>
#include <variant>

namespace lockstep {

/// The data gradient of a convolution as a layer, with a bias.
struct ConvTransposeOp {
  Conv2dShape convolution;  ///< from this layer's output to its input

  /// Rows of the output that a stride of the convolution leaves over.
  constexpr int output_padding() const {
    return (convolution.in_height + 2 * convolution.padding - convolution.reach_height()) %
           convolution.stride;
  }
};
struct MaxPoolOp {
  Pool2dShape shape;
};
struct AvgPoolOp {
  Pool2dShape shape;
};
struct ReluOp {};
struct DropoutOp {
  float probability = 0;
  bool whole_channels = false;  ///< the units are channels of more than one number
  std::uint32_t layer = 0;      ///< DropoutKey::layer
};
struct ActivationOp {
  ActivationFunction function;
};
struct GlobalAvgPoolOp {
  ImageShape input;
};
struct AdaptiveAvgPoolOp {
  AdaptivePoolShape shape;
};
/// In evaluation with the running statistics, of which nothing is said here.
struct BatchNormOp {
  ImageShape input;
  double eps = 0;
  bool affine = true;
};
/// layer_norm has one group, and a weight for each number instead of each channel.
struct GroupNormOp {
  GroupNormShape shape;
  double eps = 0;
  bool affine = true;
  bool whole_layer = false;  ///< a layer_norm
};
/// Adds the input and Layer::branch().
struct AddOp {};
/// Multiplies them; one of them has a number for each channel of the other, or as many.
struct MultiplyOp {
  ScaleShape shape;
  bool input_scales = false;  ///< otherwise the branch does
};
/// Layer::branch() and after it the input, channel after channel.
struct ConcatOp {};
/// Layer::branch() alone.
struct RouteOp {};
/// Changes nothing but the shape.
struct ViewOp {};
/// A kind that a program brings along: only the layer itself knows what it computes.
struct OwnOp {};

/// Shapes have batch 1.
using LayerOp = std::variant<Conv2dShape, ConvTransposeOp, LinearShape, MaxPoolOp, AvgPoolOp, ReluOp,
                             DropoutOp, ActivationOp, GlobalAvgPoolOp, AdaptiveAvgPoolOp, BatchNormOp,
                             GroupNormOp, AddOp, MultiplyOp, ConcatOp, RouteOp, ViewOp, OwnOp>;

}  // namespace lockstep
