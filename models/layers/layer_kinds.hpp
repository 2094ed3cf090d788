// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kinds of layers. Each file here has a table, after its classes, which stay private to it.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"
#include "models/network_builder.hpp"

#include <array>
#include <memory>
#include <span>
#include <string_view>

namespace lockstep {

/// The options of a kind that has none but its name, and what makes its layers.
inline constexpr std::array<std::string_view, 1> kNameOnly{"name"};
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

std::span<const LayerKind> convolution_kinds();  ///< convolutions.cpp
std::span<const LayerKind> pool_kinds();
std::span<const LayerKind> norm_kinds();
std::span<const LayerKind> activation_kinds();
std::span<const LayerKind> wiring_kinds();
std::span<const LayerKind> linear_kinds();  ///< weighted.cpp

}  // namespace lockstep
