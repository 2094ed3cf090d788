// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sizes and hashes of a checkpoint's numbers.
#include "trainer/checkpoint/state.hpp"

#include "common/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace lockstep {

static_assert(std::endian::native == std::endian::little,
              "files hold little-endian numbers, written as they are");

std::vector<CheckpointParameter> CheckpointFacts::tensors() const {
  std::vector<CheckpointParameter> all = parameters;
  all.insert(all.end(), kept.begin(), kept.end());
  return all;
}

std::size_t arena_size(const std::vector<CheckpointParameter>& parameters) {
  std::size_t total = 0;
  for (const CheckpointParameter& parameter : parameters) {
    std::size_t size = 1;
    for (const std::size_t dimension : parameter.shape) size *= dimension;
    total += size;
  }
  return total;
}

std::vector<TensorView> tensors_of(const std::vector<CheckpointParameter>& parameters,
                                   std::span<const float> arena, const std::string& prefix) {
  std::vector<TensorView> tensors;
  for (const CheckpointParameter& parameter : parameters) {
    const std::size_t size = arena_size({parameter});
    tensors.push_back({prefix + parameter.name, "F32", parameter.shape, std::as_bytes(arena.first(size))});
    arena = arena.subspan(size);
  }
  return tensors;
}

std::vector<TensorView> tensors_of(const std::vector<CheckpointParameter>& parameters,
                                   const OptimizerBuffer& buffer) {
  return tensors_of(parameters, buffer.values, tensor_prefix(buffer.name));
}

std::string tensor_prefix(const std::string& buffer) {
  return buffer + ".";
}

std::string unusable_numbers(const std::string& tensor, std::span<const float> numbers) {
  const bool is_variance = tensor.ends_with("running_var");
  const auto bad =
      std::ranges::count_if(numbers, [&](float v) { return !std::isfinite(v) || (is_variance && v < 0); });
  if (bad == 0) return "";
  return fmt::format("{} of {} numbers of {} {} NaN{} infinite{}", bad, numbers.size(), tensor,
                     bad == 1 ? "is" : "are", is_variance ? "," : " or", is_variance ? " or negative" : "");
}

std::string unusable_weights(const std::vector<CheckpointParameter>& tensors,
                             std::span<const float> weights) {
  std::string text;
  for (const CheckpointParameter& tensor : tensors) {
    const std::size_t size = arena_size({tensor});
    const std::string wrong = unusable_numbers(tensor.name, weights.first(size));
    if (!wrong.empty()) text += (text.empty() ? "" : ", ") + wrong;
    weights = weights.subspan(size);
  }
  return text;
}

std::string weights_sha256(std::span<const float> weights) {
  static_assert(std::endian::native == std::endian::little, "hashes and checkpoints are little-endian");
  return hex(sha256(std::as_bytes(weights)));
}

}  // namespace lockstep
