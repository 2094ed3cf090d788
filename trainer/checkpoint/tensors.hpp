// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tensors of a checkpoint: cut out of an arena, looked at, and hashed.
#pragma once

#include "common/safetensors.hpp"
#include "models/arena.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Name and shape of one tensor, in the order of the weights.
struct CheckpointParameter {
  std::string name;
  std::vector<std::size_t> shape;
  std::size_t elements() const;
  friend bool operator==(const CheckpointParameter&, const CheckpointParameter&) = default;
};

/// Names and shapes of a network's tensors.
std::vector<CheckpointParameter> described(const std::vector<Parameter>& tensors);

/// One of the things that the optimiser remembers of each parameter, in arena order. What it means is the
/// optimiser's own.
struct OptimizerBuffer {
  std::string name;
  std::vector<float> values;
  friend bool operator==(const OptimizerBuffer&, const OptimizerBuffer&) = default;
};

/// Elements of all parameters.
std::size_t arena_size(const std::vector<CheckpointParameter>& parameters);

/// The arena cut into its tensors, `prefix` before each name. Bytes are borrowed from the arena.
std::vector<TensorView> tensors_of(const std::vector<CheckpointParameter>& parameters,
                                   std::span<const float> arena, const std::string& prefix);

/// The tensors of one of the optimiser's buffers: "momentum.conv1.weight".
std::vector<TensorView> tensors_of(const std::vector<CheckpointParameter>& parameters,
                                   const OptimizerBuffer& buffer);
/// Prefix of the names of a buffer's tensors: "momentum.".
std::string tensor_prefix(const std::string& buffer);

/// Place in a flat, row-major tensor as one index a dimension.
std::vector<std::size_t> index_of(std::size_t element, const auto& shape) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[d]);
    index[d] = element % size;
    element /= size;
  }
  return index;
}

/// Describes numbers that no network can compute with: NaN, infinite, or a negative running variance. "3 of
/// 250 numbers of conv1.weight are NaN or infinite"; "" if there are none.
std::string unusable_numbers(const std::string& tensor, std::span<const float> numbers);
/// As unusable_numbers for all tensors of the weights, for a message.
std::string unusable_weights(const std::vector<CheckpointParameter>& tensors, std::span<const float> weights);

/// Weights accepted from a file: those without unusable numbers, or any, to be looked at.
enum class Weights { kUsable, kAny };

/// SHA-256 of the weights in arena order as little-endian fp32: the last line of a training run.
std::string weights_sha256(std::span<const float> weights);

}  // namespace lockstep
