// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The addition of an all-reduce: integers wrap around instead of overflowing, as they do in hardware and in
/// MPI.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

/// Accumulates: sum[i] += term[i]. Same sizes.
void sum_into(std::span<std::int64_t> sum, std::span<const std::int64_t> term);
void sum_into(std::span<float> sum, std::span<const float> term);

}  // namespace lockstep
