// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Functions of one number that layers apply to each number of a tensor.
#pragma once

#include <cstdint>

namespace lockstep {

/// The derivative is computed of what ops call `saved`: of y for kTanh and kSigmoid, of x for the others.
/// kGeluTanh is the approximation of GELU by tanh.
enum class Activation : std::uint8_t { kTanh, kSigmoid, kGelu, kGeluTanh };

}  // namespace lockstep
