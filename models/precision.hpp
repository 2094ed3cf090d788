// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// In which numbers convolutions and fully connected layers multiply.
#pragma once

#include <cstdint>

namespace lockstep {

/// kInt16: operands are rounded to 16-bit integers, and sums are exact (kernels/cpu/int16/ops.hpp). On CPUs.
enum class Precision : std::uint8_t { kFp32, kInt16 };

/// The arithmetic of kInt16, in checkpoints: another one is another number.
inline constexpr int kInt16Version = 1;

}  // namespace lockstep
