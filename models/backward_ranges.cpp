// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// backward_ranges: one walk over the layers, last to first.
#include "models/backward_ranges.hpp"

#include "models/layer.hpp"

namespace lockstep {

std::vector<BackwardRange> backward_ranges(const Network& network) {
  std::vector<BackwardRange> ranges;
  double data_gradient = 0;
  for (std::size_t i = network.layers().size(); i-- > 0;) {
    const Layer* layer = network.layers()[i].get();
    if (layer->parameters().empty()) continue;
    const double flops = layer->flops_per_sample();
    if (!ranges.empty()) ranges.back().flops = data_gradient + flops;
    ranges.push_back({layer->parameter_offset(), layer->parameter_size(), 0});
    data_gradient = flops;
  }
  return ranges;
}

}  // namespace lockstep
