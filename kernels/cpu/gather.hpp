// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Takes samples out of a data set and turns them batch-innermost, on the CPU; contracts in kernels/ops.hpp.
#pragma once

#include "kernels/shapes.hpp"

#include <cstdint>

namespace lockstep::cpu {

/// 16 x 16 bytes are transposed in registers; rows of the next 16 samples are prefetched meanwhile.
void gather_images(const GatherShape& shape, const std::uint8_t* images, const std::int32_t* index,
                   const float* scale, const float* shift, float* x);
void gather_features(const GatherShape& shape, const float* features, const std::int32_t* index, float* x);

}  // namespace lockstep::cpu
