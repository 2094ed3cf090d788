// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fingerprints of a step (kernels/numerics/fingerprint.hpp) on a device: of what its update reads, of the rest, and of its
/// sums.
#pragma once

#include "kernels/numerics/fingerprint.hpp"
#include "kernels/optimizers/update_rule.hpp"
#include "kernels/step_state.hpp"

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// A tensor of an update, whose gradient, weights and optimiser's buffers have a fingerprint each
/// (kernels/numerics/fingerprint.hpp).
struct FingerprintTensor {
  std::uint64_t first = 0;                     ///< its first word in the buffers of the whole network
  std::uint64_t offset = 0;                    ///< and its first parameter in those of the update
  std::uint32_t slots[2 + kMostBuffers] = {};  ///< fingerprint of gradient, weights, and each buffer
};

inline constexpr std::size_t kFingerprintStride = 32;

/// Destination of the fingerprints of a step, all in device memory.
struct StepFingerprints {
  /// By rising offset; after the last one comes one that begins where the parameters end.
  const FingerprintTensor* tensors = nullptr;
  const std::int32_t* tensor_of =
      nullptr;  ///< tensor of parameters 0, kFingerprintStride, 2 kFingerprintStride, ...
  std::size_t slots = 0;
  /// [kLongestSeries][slots], at row steps_done; accumulates words mod 2^64. Null: none are computed.
  std::int64_t* rows = nullptr;
};

/// A part of what no update reads, in device memory: kept weights, or an average of weights.
struct KeptPart {
  const float* floats = nullptr;
  std::size_t first = 0;                  ///< word of the whole network's buffer
  std::size_t size = 0;                   ///< words
  std::size_t slot = 0;                   ///< the fingerprint that it is a part of
  std::uint32_t buffer = kWeightsBuffer;  ///< the buffer of it
};

struct KeptFingerprintArgs {
  const KeptPart* parts = nullptr;  ///< [count], in device memory
  int count = 0;
  std::size_t slots = 0;
  std::int64_t* rows = nullptr;      ///< [kLongestSeries][slots], accumulates: words mod 2^64
  const StepState* state = nullptr;  ///< its steps_done says which row
};

/// A part of a buffer of exact sums.
struct SumPart {
  std::size_t offset = 0;  ///< offset of its first sum, in the buffer
  std::size_t first = 0;   ///< the word of kGradientBuffer that it is
  std::size_t size = 0;
  std::size_t slot = 0;  ///< the fingerprint that it is a part of
};

/// Memory is the device's.
struct SumFingerprintArgs {
  const std::int64_t* sums = nullptr;
  const SumPart* parts = nullptr;  ///< [count]
  int count = 0;
  std::int64_t* fingerprints = nullptr;  ///< by slot, accumulates: words mod 2^64
  std::int64_t* whole = nullptr;         ///< [1], accumulates all of them
};

}  // namespace lockstep
