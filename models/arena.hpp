// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All parameters of a network in one flat buffer: where each tensor lies in it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep {

/// One weight or bias tensor, a range of the arena.
struct Parameter {
  std::string name;        ///< as in a PyTorch state_dict: "conv1.weight"
  std::vector<int> shape;  ///< PyTorch's order: [K,C,R,S], [O,I], [K]
  std::size_t offset = 0;  ///< in elements
  std::size_t size = 0;    ///< in elements
  int fan_in = 0;          ///< inputs that feed one output, for initialisation
};

/// The order of the arena: layers in forward order, weight before bias, no gaps. Gradients and optimiser
/// state use the same offsets in buffers of their own.
struct ParameterLayout {
  std::vector<Parameter> parameters;
  std::size_t size = 0;  ///< elements in all
};

}  // namespace lockstep
