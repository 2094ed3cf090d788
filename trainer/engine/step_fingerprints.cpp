// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which tensors there are, and their fingerprints in host memory.
#include "trainer/engine/step_fingerprints.hpp"

#include "kernels/cpu/fingerprint.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <algorithm>

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
  const Row row = append_empty(rows);
  if (reducer != nullptr) {
    reducer->visit_sums([&](std::size_t tensor, std::size_t first, std::span<std::int64_t> sums) {
      add_sums(row, tensor, first, sums);
    });
  }
  add_state(row, 0, weights.size(), weights, buffers);
}

HostFingerprints::Row HostFingerprints::append_empty(std::vector<std::uint64_t>& rows) const {
  rows.resize(rows.size() + layout_.slots());
  return Row(rows).last(layout_.slots());
}

void HostFingerprints::add_sums(Row row, std::size_t tensor, std::size_t first,
                                std::span<const std::int64_t> sums) const {
  const HeldTensor& held = held_[tensor];
  row[layout_.gradient(held.number)] +=
      cpu::fingerprint(kGradientBuffer, held.first + (first - held.local), sums);
}

void HostFingerprints::add_state(Row row, std::size_t first, std::size_t size, std::span<const float> weights,
                                 OptimizerBuffers& buffers) const {
  for (const HeldTensor& held : held_) {
    const std::size_t begin = std::max(first, held.local),
                      end = std::min(first + size, held.local + held.size);
    if (begin >= end) continue;
    const std::size_t place = held.first + (begin - held.local);
    row[layout_.weights(held.number)] +=
        cpu::fingerprint(kWeightsBuffer, place, weights.subspan(begin, end - begin));
    if (held.number >= layout_.trained) continue;  // no optimiser knows of it
    for (std::size_t b = 0; b < layout_.buffers; ++b) {
      row[layout_.optimizer(b, held.number)] +=
          cpu::fingerprint(kOptimizerBuffer + static_cast<std::uint32_t>(b), place,
                           std::span<const float>(buffers.values(b)).subspan(begin, end - begin));
    }
  }
}

}  // namespace lockstep
