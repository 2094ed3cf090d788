// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The same figure, written a little differently: an answer that changes with that is not worth much.
#pragma once

#include "data/picture.hpp"

#include <vector>

namespace lockstep {

/// Leaning, turned, smaller and larger, wider and narrower, about the middle, by as much as hands differ. The
/// picture is light ink on black; what is turned in from outside is black.
std::vector<Picture> written_differently(const Picture& picture);

}  // namespace lockstep
