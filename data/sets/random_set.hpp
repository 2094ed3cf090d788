// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The set `random`: features from N(0, 1), as in PyTorch's DataParallel tutorial, with labels to learn.
#pragma once

#include "data/dataset.hpp"
#include "kernels/numerics/random.hpp"

#include <cstdint>

namespace lockstep {

inline constexpr int kRandomSetFeatures = 5;
inline constexpr int kRandomSetClasses = 2;
inline constexpr std::int64_t kRandomSetTrainSamples = 1000;
inline constexpr std::int64_t kRandomSetTestSamples = 200;

/// Makes the set from options.seed and the numbers of samples; a sample depends on seed, half (train or test)
/// and its own index only. The label is the larger of two fixed random linear functions of the features. Bits
/// are the same on every machine: no function of libm but the square root takes part.
TrainTestData make_random_set(const DatasetOptions& options);

// A sequence of random numbers for one made-up sample: Philox, read one word after another.

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
