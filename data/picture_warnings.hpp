// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What about a picture's ink makes it unlikely that the answer is right.
#pragma once

#include "data/ink.hpp"
#include "data/picture_preparation.hpp"

#include <string>
#include <vector>

namespace lockstep {

/// One phrase for each thing that looks unlike one whole written figure: empty if nothing does.
/// @param ink  of this picture, not empty
std::vector<std::string> picture_warnings(const Picture& picture, const Ink& ink, const PictureFrame& frame);

}  // namespace lockstep
