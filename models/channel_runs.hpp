// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which layers run together on a CPU, some channels at a time, so that what they hand on is still in the cache.
#pragma once

#include "models/layer.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

/// The layers [first, last]: one whose outputs can be had a few at a time, and those behind it that work on each channel
/// by itself.
struct ChannelRun {
  std::size_t first = 0, last = 0;
};

/// Runs of at least two layers, in order, counted from the first of these layers.
/// @param branched  for each of them, whether others branch off its output: they want it whole
std::vector<ChannelRun> channel_runs(std::span<const Layer* const> layers, const std::vector<bool>& branched);

}  // namespace lockstep
