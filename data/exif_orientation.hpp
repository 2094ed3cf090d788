// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How a camera was held: the orientation that a JPEG's EXIF block records.
#pragma once

#include "data/picture.hpp"

#include <cstdint>
#include <span>

namespace lockstep {

/// 1 to 8 as EXIF numbers them; 1, upright, for anything that is no EXIF block or has no such entry.
/// @param marker  the contents of an APP1 marker, from "Exif\0\0" on
int exif_orientation(std::span<const std::uint8_t> marker);

/// The picture as it was seen: mirrored and turned as orientation 2 to 8 asks for.
Picture upright(const Picture& picture, int orientation);

}  // namespace lockstep
