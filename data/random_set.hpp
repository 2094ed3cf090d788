// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The set `random`: features from N(0, 1), as in PyTorch's DataParallel tutorial, with labels to learn.
#pragma once

#include "data/dataset.hpp"

namespace lockstep {

inline constexpr int kRandomSetFeatures = 5;
inline constexpr int kRandomSetClasses = 2;
inline constexpr std::int64_t kRandomSetTrainSamples = 1000;
inline constexpr std::int64_t kRandomSetTestSamples = 200;

/// Makes the set from options.seed and the numbers of samples; a sample depends on seed, half (train or test)
/// and its own index only. The label is the larger of two fixed random linear functions of the features. Bits
/// are the same on every machine: no function of libm but the square root takes part.
TrainTestData make_random_set(const DatasetOptions& options);

}  // namespace lockstep
