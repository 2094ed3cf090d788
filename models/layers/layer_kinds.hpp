// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kinds of layers. Each file here has a table, after its classes, which stay private to it.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>
#include <vector>

namespace lockstep {

/// Makes the layers of a kind that has no options but its name.
template <typename Kind>
std::unique_ptr<Layer> make_without_options(const LayerOptions& /*options*/, const LayerPlace& place) {
  return std::make_unique<Kind>(place);
}

/// The shape with so many samples.
template <typename Shape>
Shape with_batch(Shape shape, int batch) {
  shape.batch = batch;
  return shape;
}

std::vector<LayerKind> convolution_kinds();  ///< convolutions.cpp
std::vector<LayerKind> pool_kinds();
std::vector<LayerKind> norm_kinds();
std::vector<LayerKind> activation_kinds();
std::vector<LayerKind> wiring_kinds();
std::vector<LayerKind> linear_kinds();  ///< weighted.cpp

}  // namespace lockstep
