// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The fingerprints of a training step: of each tensor's summed gradient, weights and what the optimiser
/// remembers of it, all as they are between the reduction and the update. So what a row says is what the step was
/// computed from, and what it came to.
#pragma once

#include "comm/gradient_reducer.hpp"
#include "models/arena.hpp"
#include "trainer/engine/weight_update.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Where each fingerprint stands in the row of a step: gradients of all tensors, weights of all (behind them
/// those that are only kept), then each of the optimiser's buffers.
struct FingerprintLayout {
  std::size_t trained = 0, kept = 0;  ///< tensors
  std::size_t buffers = 0;            ///< of the optimiser

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

/// Of all tensors, where a rank holds the whole network.
std::vector<HeldTensor> held_tensors(const ParameterLayout& parameters);

/// The fingerprints of host memory. Borrows nothing.
class HostFingerprints {
 public:
  /// @param layout  of the whole network
  /// @param held    the trained tensors in the reducer's order, then those that are kept
  HostFingerprints(const FingerprintLayout& layout, std::vector<HeldTensor> held)
      : layout_(layout), held_(std::move(held)) {}

  /// Appends the row of a step to `rows`; tensors that this rank does not hold have zeros.
  /// @param reducer  after wait(); null where the rank holds no tensor
  void append(GradientReducer* reducer, std::span<const float> weights, OptimizerBuffers& buffers,
              std::vector<std::uint64_t>& rows) const;

  // The same by those who walk over all of it anyway, part by part, in any order.
  using Row = std::span<std::uint64_t>;
  /// Of zeros. Valid until `rows` grows.
  Row append_empty(std::vector<std::uint64_t>& rows) const;
  /// @param sums  of a held tensor, from element `first` of the rank's own on
  void add_sums(Row row, std::size_t tensor, std::size_t first, std::span<const std::int64_t> sums) const;
  /// What the optimiser and the weights have in [first, first + size) of the rank's own.
  void add_state(Row row, std::size_t first, std::size_t size, std::span<const float> weights,
                 OptimizerBuffers& buffers) const;

 private:
  FingerprintLayout layout_;
  std::vector<HeldTensor> held_;
};

}  // namespace lockstep
