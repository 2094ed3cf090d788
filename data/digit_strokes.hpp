// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the ten digits are written: strokes in a unit box.
#pragma once

#include "data/pen.hpp"

#include <cstdint>
#include <span>

namespace lockstep {

/// The strokes of a digit 0 to 9, in a box from (0, 0) top left to (1, 1) bottom right.
std::span<const Curve> strokes_of_digit(std::int32_t digit);

}  // namespace lockstep
