// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The set `synthetic`: 28x28 digits drawn in memory, for tests and for machines without a network.
#pragma once

#include "data/dataset.hpp"

namespace lockstep {

inline constexpr int kSyntheticSetSide = 28;
inline constexpr int kSyntheticSetClasses = 10;
inline constexpr std::int64_t kSyntheticSetTrainSamples = 6000;
inline constexpr std::int64_t kSyntheticSetTestSamples = 1000;

/// Draws the set from options.seed and the numbers of samples; a sample depends on seed, half (train or test)
/// and its own index only, so a larger set begins with the smaller one. Every machine draws the same bytes.
TrainTestData make_synthetic_set(const DatasetOptions& options);

}  // namespace lockstep
