// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Normal numbers.
#include "data/draws.hpp"

#include "kernels/numerics/portable_math.hpp"

namespace lockstep {

double Draws::normal() {
  return normal_quantile((bits() + 0.5) / 4294967296.0);
}

}  // namespace lockstep
