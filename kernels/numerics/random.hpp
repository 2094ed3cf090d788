// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The generator of every random number of a run. Philox4x32-10 is a function of a key and a counter, with no
/// state.
///
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
/// One code runs on the host and in GPU kernels, so that both draw equal numbers.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

namespace lockstep {

/// Four independent uniform 32-bit numbers.
struct Philox4 {
  std::uint32_t value[4];
};

/// One block of Philox4x32-10.
LOCKSTEP_HOST_DEVICE constexpr Philox4 philox(std::uint64_t key, Philox4 counter) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = counter.value[0], c1 = counter.value[1], c2 = counter.value[2], c3 = counter.value[3];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * c0;
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * c2;
    const auto high0 = static_cast<std::uint32_t>(product0 >> 32),
               low0 = static_cast<std::uint32_t>(product0);
    const auto high1 = static_cast<std::uint32_t>(product1 >> 32),
               low1 = static_cast<std::uint32_t>(product1);
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

/// The purpose of a random number. Part of the counter, so that two uses never share numbers.
enum class RandomUse : std::uint32_t {
  kShuffle = 1,
  kInitialise = 2,
  kDropout = 3,
  kData = 4,
  kAugment = 7,
  kBalance = 9,
  kWindow = 10
};

/// Philox counter word 2: the use in the top byte, which layer, parameter or epoch below it.
LOCKSTEP_HOST_DEVICE constexpr std::uint32_t random_stream(RandomUse use, std::uint32_t index) {
  return (static_cast<std::uint32_t>(use) << 24) | (index & 0x00FFFFFFU);
}

/// The top 24 bits as a float in [0, 1): exact, the same on every machine.
LOCKSTEP_HOST_DEVICE constexpr float uniform01(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * (1.0F / 16777216.0F);
}

/// Names the dropout mask of one layer in one step. Unit u of column n is decided by word u % 4 of
/// philox(seed, {u / 4, first_sample + n, random_stream(kDropout, layer), step}).
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;          ///< optimiser steps done before this one
  std::uint32_t layer = 0;         ///< index of the layer in the network
  std::uint32_t first_sample = 0;  ///< position in the *global* batch of column 0
};

/// A unit is dropped when its 32 random bits are below this.
LOCKSTEP_HOST_DEVICE constexpr std::uint32_t dropout_threshold(float probability) {
  return static_cast<std::uint32_t>(static_cast<double>(probability) * 4294967296.0);
}

}  // namespace lockstep
