// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run is a layer that splits its outputs, and the channelwise layers behind it.
#include "models/channel_runs.hpp"

namespace lockstep {

std::vector<ChannelRun> channel_runs(std::span<const Layer* const> layers,
                                     const std::vector<bool>& branched) {
  std::vector<ChannelRun> runs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i]->splits_outputs()) continue;
    std::size_t last = i;
    while (last + 1 < layers.size() && !branched[last] && layers[last + 1]->is_channelwise()) ++last;
    if (last > i) runs.push_back({i, last});
  }
  return runs;
}

}  // namespace lockstep
