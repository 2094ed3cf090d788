// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rows of this rank's tensors, and of all ranks in one all-reduce.
#include "trainer/training/fingerprints.hpp"

#include "kernels/cpu/ops.hpp"
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

void add_state(const FingerprintLayout& layout, std::span<const HeldTensor> held, const float* weights,
               float* const* buffers, std::size_t first, std::size_t last, std::span<std::uint64_t> row) {
  for (const HeldTensor& tensor : held) {
    const std::size_t begin = std::max(first, tensor.local), end = std::min(last, tensor.local + tensor.size);
    if (begin >= end) continue;
    const auto add = [&](std::size_t slot, std::uint32_t buffer, const float* values) {
      row[slot] += cpu::fingerprint(buffer, tensor.first + (begin - tensor.local),
                                    std::span(values + begin, end - begin));
    };
    add(layout.weights(tensor.number), kWeightsBuffer, weights);
    if (tensor.number >= layout.trained) continue;  // no optimiser knows of it
    for (std::size_t b = 0; b < layout.buffers; ++b)
      add(layout.optimizer(b, tensor.number), kOptimizerBuffer + static_cast<std::uint32_t>(b), buffers[b]);
  }
}

std::vector<std::uint64_t> fingerprints_of_state(const FingerprintLayout& layout,
                                                 std::span<const HeldTensor> held,
                                                 const TrainedState& state) {
  std::vector<std::uint64_t> row(layout.slots());
  std::vector<float*> buffers;
  for (const OptimizerBufferView& buffer : state.optimizer) buffers.push_back(buffer.values.data());
  add_state(layout, held, state.weights.data(), buffers.data(), 0, state.weights.size(), row);
  return row;
}

CombinedFingerprints combine_rows(Communicator& comm, std::span<std::uint64_t> rows, std::size_t slots,
                                  std::span<const std::uint64_t> own_sums, int copies,
                                  const std::vector<std::uint64_t>& parts) {
  const std::size_t steps = rows.size() / slots;
  const std::uint64_t weight = rank_weight(comm.rank());
  const auto whole = [&](std::size_t step) { return whole_fingerprint(rows.subspan(step * slots, slots)); };
  std::vector<std::uint64_t> mine = parts;
  for (std::size_t i = 0; i < steps; ++i) mine.push_back(whole(i));
  for (std::size_t i = 0; i < steps; ++i) mine.push_back(weight * whole(i));
  for (const std::uint64_t own : own_sums) mine.push_back(weight * own);
  std::vector<std::int64_t> numbers(mine.begin(), mine.end());
  comm.all_reduce(std::span(numbers));
  std::copy_n(numbers.begin(), parts.size(), rows.begin());
  const auto behind_rows = std::span(numbers).subspan(parts.size());
  const auto of_copies = behind_rows.subspan(steps, steps), sums = behind_rows.subspan(2 * steps);
  CombinedFingerprints combined{.apart = {},
                                .weighted_copies = {of_copies.begin(), of_copies.end()},
                                .weighted_sums = {sums.begin(), sums.end()}};
  for (std::size_t i = 0; i < steps; ++i)
    combined.apart.push_back(static_cast<std::uint64_t>(behind_rows[i]) -
                             static_cast<std::uint64_t>(copies) * whole(i));
  return combined;
}

}  // namespace lockstep
