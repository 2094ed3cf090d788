// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which layers cut a network, and where their statistics lie.
#include "models/batch_layer.hpp"

#include "models/layer.hpp"

#include <algorithm>

namespace lockstep {

std::vector<Cut> cuts_of(const Network& network) {
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    if (const BatchLayer* over_batch = network.layers()[i]->over_batch()) cuts.push_back({i, over_batch});
  }
  return cuts;
}

std::size_t most_words(const std::vector<Cut>& cuts) {
  std::size_t most = 0;
  for (const Cut& cut : cuts) most = std::max(most, cut.over_batch->words());
  return most;
}

std::vector<Cut> backward_cuts_of(const Network& network) {
  const auto& layers = network.layers();
  const auto first = std::ranges::find_if(layers, [](const auto& l) { return !l->parameters().empty(); });
  const auto first_trained = static_cast<std::size_t>(first - layers.begin());
  std::vector<Cut> cuts = cuts_of(network);
  std::erase_if(cuts, [&](const Cut& cut) { return cut.layer < first_trained; });
  return cuts;
}

BatchStatistics::BatchStatistics(const Network& network) : offsets_(network.layers().size(), kNone) {
  constexpr std::size_t kAlignment = 64;
  std::size_t bytes = 0;
  for (const Cut& cut : cuts_of(network)) {
    offsets_[cut.layer] = bytes;
    bytes += (cut.over_batch->statistics_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  memory_ = AlignedBuffer<std::byte>(bytes);
}

std::byte* BatchStatistics::of(std::size_t layer) {
  return offsets_[layer] == kNone ? nullptr : memory_.data() + offsets_[layer];
}

}  // namespace lockstep
