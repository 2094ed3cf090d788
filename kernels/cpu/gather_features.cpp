// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Feature vectors of random samples to batch-innermost: a transposition in tiles that stay in the
/// first-level cache.
#include "kernels/cpu/gather.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep::cpu {
namespace {

constexpr int kTile = 16;  ///< samples and features that are transposed at a time: one cache line of each

/// x[f][n] of one tile; columns from `real` on become 0.
void gather_tile(const GatherShape& shape, const float* features, const std::int32_t* index, int first_sample,
                 int first_feature, float* x) {
  const int real = std::clamp(shape.samples - first_sample, 0, kTile);
  const int last_feature = std::min(first_feature + kTile, shape.features);
  for (int i = 0; i < kTile; ++i) {
    const int n = first_sample + i;
    const float* row =
        i < real ? features + static_cast<std::size_t>(index[n]) * static_cast<std::size_t>(shape.features)
                 : nullptr;
    for (int f = first_feature; f < last_feature; ++f) {
      x[static_cast<std::size_t>(f) * static_cast<std::size_t>(shape.batch) + static_cast<std::size_t>(n)] =
          row != nullptr ? row[f] : 0.0F;
    }
  }
}

}  // namespace

void gather_features(const GatherShape& shape, const float* features, const std::int32_t* index, float* x) {
  for (int n = 0; n < shape.batch; n += kTile) {
    for (int f = 0; f < shape.features; f += kTile) gather_tile(shape, features, index, n, f, x);
  }
}

}  // namespace lockstep::cpu
