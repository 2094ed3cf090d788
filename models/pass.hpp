// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where a pass through the network stands.
#pragma once

#include <cstdint>

namespace lockstep {

/// For everything random in a pass: the same key draws the same dropout masks.
struct PassKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;          ///< optimiser steps taken before this one
  std::uint32_t first_sample = 0;  ///< position of column 0 in the global batch
};

}  // namespace lockstep
