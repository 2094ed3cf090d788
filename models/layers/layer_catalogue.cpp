// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All kinds of layers, from the tables of the files here.
#include "models/layers/layer_kinds.hpp"

#include <span>
#include <vector>

namespace lockstep {

// Messages list them in this order.

std::span<const LayerKind> layer_catalogue() {
  static const std::vector<LayerKind> catalogue = [] {
    std::vector<LayerKind> all;
    for (const auto& kinds : {convolution_kinds(), pool_kinds(), norm_kinds(), activation_kinds(),
                              wiring_kinds(), linear_kinds()})
      all.insert(all.end(), kinds.begin(), kinds.end());
    return all;
  }();
  return catalogue;
}

}  // namespace lockstep
