// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that run once more before backward needs what they write: time for memory.
#pragma once

#include "models/tensor_uses.hpp"

#include <cstddef>
#include <vector>

namespace lockstep {

struct RepeatedLayers {
  std::vector<std::vector<std::size_t>> before;  ///< layer → TensorPlan::again
  std::vector<bool> again;                       ///< layer → it runs once more
  std::vector<bool> remade;  ///< tensor → it has a second life in backward, or none there
};

/// Those of all segments but the last one.
/// @param begins  begins of all segments but the first one; of segment_begins()
RepeatedLayers repeat_segments(const TensorUses& uses, const std::vector<std::size_t>& begins);

/// Makes each output of a norm or a route again right before backward first reads it: one pass.
RepeatedLayers repeat_quick_layers(const TensorUses& uses);

/// Begins of at most so many segments, without the first one. Forward makes about equally much in each. A
/// begin is a layer at which one tensor alone goes on, and no layer overwrites it.
std::vector<std::size_t> segment_begins(const TensorUses& uses, std::size_t segments);

}  // namespace lockstep
