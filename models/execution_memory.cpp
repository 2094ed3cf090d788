// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "models/execution_memory.hpp"

#include "common/checked_size.hpp"
#include "models/layer.hpp"
#include "models/tensor_plan.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// Numbers that the kernels of one convolution keep: its input in a frame of zeros, its filters in another
/// order, and a few lines of partial sums for each weight of a filter.
std::uint64_t scratch_of(const Conv2dShape& s, int columns) {
  constexpr int kLines = 5 * 16;
  const std::uint64_t padded =
      checked_product(s.in_channels, s.in_height + 2 * s.padding, s.in_width + 2 * s.padding, columns);
  const std::uint64_t taps = checked_product(s.in_channels, s.kernel_height, s.kernel_width);
  return checked_sum(s.padding > 0 ? padded : 0, s.weight_size(), checked_product(kLines + 2, taps));
}

/// Its input, transposed.
std::uint64_t scratch_of(const LinearShape& s, int columns) {
  return checked_product(s.in_features + 16, columns);
}

}  // namespace

std::uint64_t execution_bytes(const Network& network, int columns) {
  return plan_tensors(network, columns).bytes;
}

std::uint64_t kernel_scratch_bytes(const Network& network, int columns) {
  std::uint64_t most = 0;
  for (const auto& layer : network.layers()) {
    const LayerOp op = layer->op();
    if (const auto* conv = std::get_if<Conv2dShape>(&op)) most = std::max(most, scratch_of(*conv, columns));
    if (const auto* linear = std::get_if<LinearShape>(&op))
      most = std::max(most, scratch_of(*linear, columns));
  }
  return checked_product(most, sizeof(float));
}

}  // namespace lockstep
