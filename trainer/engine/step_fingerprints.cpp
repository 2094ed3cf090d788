// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/engine/step_fingerprints.hpp"

#include "kernels/cpu/fingerprint.hpp"
#include "kernels/numerics/fingerprint.hpp"

namespace lockstep {

FingerprintLayout fingerprint_layout(const ParameterLayout& parameters, std::size_t buffers) {
  return {.trained = parameters.parameters.size(), .kept = parameters.kept.size(), .buffers = buffers};
}

std::vector<HeldTensor> held_tensors(const ParameterLayout& parameters) {
  std::vector<HeldTensor> held;
  for (const Parameter& tensor : parameters.tensors())
    held.push_back({held.size(), tensor.offset, tensor.offset, tensor.size});
  return held;
}

void HostFingerprints::append(GradientReducer* reducer, std::span<const float> weights,
                              OptimizerBuffers& buffers, std::vector<std::uint64_t>& rows) const {
  rows.resize(rows.size() + layout_.slots());
  const std::span<std::uint64_t> row = std::span(rows).last(layout_.slots());
  if (reducer != nullptr) {
    reducer->visit_sums([&](std::size_t tensor, std::size_t first, std::span<std::int64_t> sums) {
      const HeldTensor& held = held_[tensor];
      row[layout_.gradient(held.number)] +=
          cpu::fingerprint(kGradientBuffer, held.first + (first - held.local), sums);
    });
  }
  for (const HeldTensor& held : held_) {
    row[layout_.weights(held.number)] =
        cpu::fingerprint(kWeightsBuffer, held.first, weights.subspan(held.local, held.size));
    if (held.number >= layout_.trained) continue;  // no optimiser knows of it
    for (std::size_t b = 0; b < layout_.buffers; ++b) {
      row[layout_.optimizer(b, held.number)] =
          cpu::fingerprint(kOptimizerBuffer + static_cast<std::uint32_t>(b), held.first,
                           std::span<const float>(buffers.values(b)).subspan(held.local, held.size));
    }
  }
}

}  // namespace lockstep
