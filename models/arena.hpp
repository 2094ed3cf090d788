// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All parameters of a network in one flat buffer, and what it keeps beside them: where each tensor lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// One weight or bias tensor, a range of the arena; or a tensor that is only kept.
struct Parameter {
  enum class Initial { kRandom, kZeros, kOnes };

  std::string name;        ///< as in a PyTorch state_dict: "conv1.weight"
  std::vector<int> shape;  ///< PyTorch's order: [K,C,R,S], [O,I], [K]
  std::size_t offset = 0;  ///< in elements
  std::size_t size = 0;    ///< in elements
  int fan_in = 0;          ///< inputs that feed one output, for initialisation
  Initial initial = Initial::kRandom;

  /// Not what inputs are multiplied by and added up: a layer_norm's has as many dimensions as its input.
  bool is_bias_or_norm() const { return shape.size() == 1 || initial != Initial::kRandom; }
};

/// The order of the arena: layers in forward order, weight before bias, no gaps. Gradients and optimiser
/// state use the same offsets in separate buffers. After them, in the buffer of the weights alone, lie
/// the tensors that training keeps but no gradient moves, such as running statistics.
struct ParameterLayout {
  std::vector<Parameter> parameters;
  std::size_t size = 0;  ///< elements of all parameters
  std::vector<Parameter> kept;
  std::size_t kept_size = 0;  ///< elements

  /// Elements of the buffer of the weights.
  std::size_t weights_size() const { return size + kept_size; }
  /// Every tensor of that buffer, in its order.
  std::vector<Parameter> tensors() const;
};

// Position of a pass through the network.

/// For everything random in a pass: the same key draws the same dropout masks.
struct PassKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;          ///< optimiser steps taken before this one
  std::uint32_t first_sample = 0;  ///< position of column 0 in the global batch
};

}  // namespace lockstep
