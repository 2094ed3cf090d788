// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fingerprints of buffers of a training step (weights, summed gradients, buffers of the optimiser). One is the
/// sum over all words of word times multiplier, mod 2^64. Integers, so in any order and from any parts equal;
/// one code for CPUs and GPUs.
///
/// The multipliers are odd and depend on buffer and position. So one flipped bit b of word i changes a
/// fingerprint by exactly +-2^b times the multiplier, which is never 0, and tells buffer, i and b. It finds
/// accidents, not malice: what guards a file is SHA-256 (trainer/checkpoint/trail.hpp).
#pragma once

#include "kernels/numerics/random.hpp"  // LOCKSTEP_HOST_DEVICE

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// Numbers of the buffers, which are part of the format of trails.
inline constexpr std::uint32_t kGradientBuffer = 0;   ///< summed gradients: words of 64 bits, the integers
inline constexpr std::uint32_t kWeightsBuffer = 1;    ///< words of 32 bits, the floats' bits
inline constexpr std::uint32_t kOptimizerBuffer = 2;  ///< and the next ones: one for each buffer; likewise

/// A multiplier is a product: one factor for the place in a block and one for the block. So few are stored.
inline constexpr std::size_t kFingerprintBlock = 1024;

/// The finaliser of splitmix64, a bijection of 64 bits.
LOCKSTEP_HOST_DEVICE constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// The factor of a place. 32 bits, since CPUs multiply such numbers several times as fast.
/// @param place  in the block
LOCKSTEP_HOST_DEVICE constexpr std::uint32_t place_multiplier(std::uint64_t place) {
  return static_cast<std::uint32_t>(mix_bits(place)) | 1U;
}

LOCKSTEP_HOST_DEVICE constexpr std::uint64_t block_multiplier(std::uint32_t buffer, std::uint64_t block) {
  return mix_bits((std::uint64_t{buffer} + 1) << 48 ^ block) | 1U;
}

/// The multiplier of word i of a buffer, counted from the start of the whole network's.
LOCKSTEP_HOST_DEVICE constexpr std::uint64_t word_multiplier(std::uint32_t buffer, std::uint64_t i) {
  return std::uint64_t{place_multiplier(i % kFingerprintBlock)} *
         block_multiplier(buffer, i / kFingerprintBlock);
}

}  // namespace lockstep
