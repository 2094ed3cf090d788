// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Photographs of paper are lighter on one side than on the other.
#pragma once

#include "data/picture.hpp"

namespace lockstep {

/// The picture with its paper evenly lit: a quadratic surface, fitted to what is not ink, is taken off. A
/// picture whose paper is even already is returned as it is.
Picture evenly_lit(const Picture& picture);

}  // namespace lockstep
