// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A sequence of random numbers for one made-up sample: Philox, read one word after another.
#pragma once

#include "kernels/numerics/random.hpp"

#include <cstdint>

namespace lockstep {

/// Which numbers of RandomUse::kData are for what.
enum class DataStream : std::uint32_t {
  kRandomMap = 0,
  kRandomTrain,
  kRandomTest,
  kSyntheticTrain,
  kSyntheticTest
};

/// Word w of a sample is word w % 4 of philox(seed, {w / 4, sample, random_stream(kData, stream), 0}).
/// All results are the same on every machine: additions, multiplications, divisions and square roots only.
class Draws {
 public:
  Draws(std::uint64_t seed, DataStream stream, std::uint32_t sample)
      : seed_(seed), stream_(stream), sample_(sample) {}

  std::uint32_t bits() {
    const std::uint32_t word = next_++;
    if (word % 4 == 0)
      block_ = philox(seed_, {{word / 4, sample_,
                               random_stream(RandomUse::kData, static_cast<std::uint32_t>(stream_)), 0}});
    return block_.value[word % 4];
  }
  /// In [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform01(bits()); }
  /// In [0, bound), by multiply and shift: off from uniform by less than bound / 2^32.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{bits()} * bound) >> 32);
  }
  /// From N(0, 1), by the inverse of its distribution function.
  double normal();

 private:
  std::uint64_t seed_;
  DataStream stream_;
  std::uint32_t sample_;
  std::uint32_t next_ = 0;
  Philox4 block_{};
};

}  // namespace lockstep
