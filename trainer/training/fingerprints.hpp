// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The fingerprints of a training step. They are those of each tensor's summed gradient, weights and what the
/// optimiser remembers of it, all as they are between the reduction and the update. So what a row says is what the
/// step was computed from, and its result.
#pragma once

#include "comm/communicator.hpp"
#include "models/arena.hpp"
#include "trainer/training/trained_state.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace lockstep {

/// Places of fingerprints in the row of a step. They are gradients of all tensors, weights of all (after them those
/// that are only kept), then each of the optimiser's buffers.
struct FingerprintLayout {
  std::size_t trained = 0, kept = 0;  ///< tensors
  std::size_t buffers = 0;            ///< the optimiser's

  std::size_t slots() const { return trained * (2 + buffers) + kept; }
  std::size_t gradient(std::size_t tensor) const { return tensor; }
  /// @param tensor  a kept one's number follows those of the trained ones
  std::size_t weights(std::size_t tensor) const { return trained + tensor; }
  std::size_t optimizer(std::size_t buffer, std::size_t tensor) const {
    return trained * (2 + buffer) + kept + tensor;
  }
};

FingerprintLayout fingerprint_layout(const ParameterLayout& parameters, std::size_t buffers);

/// A tensor in the memory of this rank, which may hold a part of the network.
struct HeldTensor {
  std::size_t number = 0;  ///< in the network
  std::size_t first = 0;   ///< element, in the buffers of the whole network
  std::size_t local = 0;   ///< element, in the rank's own
  std::size_t size = 0;
};

/// All tensors, where a rank holds the whole network.
std::vector<HeldTensor> held_tensors(const ParameterLayout& parameters);

/// Adds fingerprints of weights and optimiser state to a row: elements [first, last) of this rank's own.
void add_state(const FingerprintLayout& layout, std::span<const HeldTensor> held, const float* weights,
               float* const* buffers, std::size_t first, std::size_t last, std::span<std::uint64_t> row);
/// The row of a step before it: zeros for the gradients, and for what this rank does not hold.
std::vector<std::uint64_t> fingerprints_of_state(const FingerprintLayout& layout,
                                                 std::span<const HeldTensor> held, const TrainedState& state);

// Rows of steps of which several ranks hold copies.

/// By which sums over ranks tell one from the other.
inline std::uint64_t rank_weight(int rank) {
  return static_cast<std::uint64_t>(rank) + 1;
}

/// All ranks' fingerprints combined, for each of some steps. On rank 0; elsewhere it means nothing.
struct CombinedFingerprints {
  /// 0 if all ranks had the same bits. Otherwise the sum of the differences of their rows to rank 0's.
  std::vector<std::uint64_t> apart;
  /// Sums over ranks of rank_weight() times a fingerprint of each, of its row and of its own sums. Empty: not known.
  std::vector<std::uint64_t> weighted_copies = {}, weighted_sums = {};
};

/// A row's fingerprints have multipliers of their own, so their sum is the fingerprint of all of them.
inline std::uint64_t whole_fingerprint(std::span<const std::uint64_t> row) {
  return std::accumulate(row.begin(), row.end(), std::uint64_t{0});
}

/// Adds up the fingerprints of steps over the ranks, from their rows [steps][slots], in one all-reduce. Collective.
/// @param parts   added up over the ranks they become the rows of the first copy; empty: all ranks have whole rows
/// @param copies  of each row, over all ranks
CombinedFingerprints combine_rows(Communicator& comm, std::span<std::uint64_t> rows, std::size_t slots,
                                  std::span<const std::uint64_t> own_sums, int copies,
                                  const std::vector<std::uint64_t>& parts = {});

}  // namespace lockstep
