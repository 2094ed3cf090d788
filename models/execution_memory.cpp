// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sizes that Execution will ask for, from the same plan.
#include "models/execution_memory.hpp"

#include "common/checked_size.hpp"
#include "models/layer.hpp"
#include "models/tensor_plan.hpp"

#include <algorithm>

namespace lockstep {
std::uint64_t execution_bytes(const Network& network, int columns) {
  return plan_tensors(network, columns).bytes;
}

std::uint64_t kernel_scratch_bytes(const Network& network, int columns) {
  std::uint64_t most = 0;
  for (const auto& layer : network.layers()) {
    most = std::max(most, layer->scratch_numbers(columns));
  }
  return checked_product(most, sizeof(float));
}

}  // namespace lockstep
