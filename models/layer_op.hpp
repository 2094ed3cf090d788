// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a layer is, as plain numbers: for those who run networks by other means than Layer::forward.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>
#include <variant>

namespace lockstep {

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
  Activation kind;
};
struct GlobalAvgPoolOp {
  ImageShape input;
};
/// In evaluation with the running statistics, of which nothing is said here.
struct BatchNormOp {
  ImageShape input;
  double eps = 0;
  bool affine = true;
};
/// Of the input and Layer::branch().
struct AddOp {};
/// Layer::branch() alone.
struct RouteOp {};
/// Changes nothing but the shape.
struct ViewOp {};

/// Shapes have batch 1.
using LayerOp = std::variant<Conv2dShape, LinearShape, MaxPoolOp, AvgPoolOp, ReluOp, DropoutOp, ActivationOp,
                             GlobalAvgPoolOp, BatchNormOp, AddOp, RouteOp, ViewOp>;

}  // namespace lockstep
