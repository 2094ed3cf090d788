// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of gradients over grains and their means, exact (int64) and plain (fp32), on the CPU; contracts in
/// kernels/ops.hpp, the exact format in kernels/numerics/sums.hpp. Pointers need no alignment.
#pragma once

#include "kernels/numerics/sums.hpp"

#include <cstddef>
#include <cstdint>

namespace lockstep::cpu {

bool accumulate_exact(std::size_t size, const float* g, const ExactFormat& format, std::int64_t* sum);
void mean_from_exact(std::size_t size, const std::int64_t* sum, double scale, std::int64_t count, float* g);
void accumulate(std::size_t size, const float* g, float* sum);
void mean(std::size_t size, const float* sum, std::int64_t count, float* g);

}  // namespace lockstep::cpu
