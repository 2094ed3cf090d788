// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engine "doubles".
#pragma once

#include "kernels/cpu/int16_operands.hpp"

#include <cstddef>
#include <cstdint>

namespace lockstep::cpu::int16 {

/// Targets of a block of packed weights, with the instruction set in use.
std::size_t doubles_targets(int batch);

/// One group; at most kExactTerms taps in all.
/// @param source  integers [source][row][column][sample]
/// @param packed  integers, as for_each_tile has them
/// @param units   [columns], of source and weights together
/// @param bias    [targets]; null: zeros
void correlate_doubles(const Correlation& c, const float* source, const double* packed, const double* units,
                       const float* bias, float* target);
/// @param x, dy  integers      @param sums  [numbers_of_sums(shape)], scratch
/// @param totals  [filter][tap], overwritten
void sum_gradients_doubles(const GradientShape& shape, const float* x, const float* dy, double* sums,
                           std::int64_t* totals);

}  // namespace lockstep::cpu::int16
