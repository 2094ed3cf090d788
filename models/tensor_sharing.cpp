// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One walk over the layers, which remembers what backward and branches will ask of the tensor at hand.
#include "models/tensor_sharing.hpp"

#include <algorithm>

namespace lockstep {

std::vector<bool> layers_that_branch(Layers layers) {
  std::vector<bool> branches(layers.size());
  for (const auto& layer : layers) {
    if (const auto from = layer->branch()) branches[*from] = true;
  }
  return branches;
}

std::vector<std::size_t> output_tensors(Layers layers) {
  using Need = Layer::OutputNeed;
  const std::vector<bool> branches = layers_that_branch(layers);
  std::vector<std::size_t> tensors;
  std::size_t last = 0;
  Need need = Need::kNumbers;  // the network's input stays as it is
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = *layers[i];
    const bool in_place = layer.output_memory() == Layer::OutputMemory::kInPlace && need == Need::kNothing;
    if (layer.output_memory() != Layer::OutputMemory::kView && !in_place) {
      ++last;
      need = Need::kNothing;
    }
    need = std::max(need, branches[i] ? Need::kNumbers : layer.output_need());
    tensors.push_back(last);
  }
  return tensors;
}

}  // namespace lockstep
