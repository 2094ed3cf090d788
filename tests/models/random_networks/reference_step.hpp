// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A whole network on one batch in double: loss, correct answers and gradients, and how far fp32 may be off.
#pragma once

#include "models/network.hpp"
#include "tests/models/random_networks/reference_layers.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::test {

/// Samples as the network sees them.
struct Batch {
  std::vector<double> x;  ///< [features][samples]
  std::vector<std::int32_t> labels;

  int samples() const { return static_cast<int>(labels.size()); }
};

struct ReferenceStep {
  double loss = 0, loss_allowed = 0;                 ///< sum over the samples
  std::int64_t least_correct = 0, most_correct = 0;  ///< they differ where two logits are tied
  Bounded gradients;                                 ///< sums over the samples, arena order; training only
  std::int64_t ties = 0;  ///< decisions of relu and max-pool that rounding may turn
};

/// @param key  of dropout; sample 0 is position 0 of the global batch
ReferenceStep reference_training(const Network& network, std::span<const float> weights, const Batch& batch,
                                 const PassKey& key);
ReferenceStep reference_evaluation(const Network& network, std::span<const float> weights,
                                   const Batch& batch);

}  // namespace lockstep::test
