// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sizes and hashes of a checkpoint's numbers.
#include "trainer/checkpoint/tensors.hpp"

#include "common/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

namespace lockstep {

static_assert(std::endian::native == std::endian::little,
              "files and hashes are of little-endian numbers, as memory is here");

std::size_t CheckpointParameter::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::vector<CheckpointParameter> described(const std::vector<Parameter>& tensors) {
  std::vector<CheckpointParameter> parameters;
  for (const Parameter& p : tensors) parameters.push_back({p.name, {p.shape.begin(), p.shape.end()}});
  return parameters;
}

std::size_t arena_size(const std::vector<CheckpointParameter>& parameters) {
  std::size_t total = 0;
  for (const CheckpointParameter& parameter : parameters) total += parameter.elements();
  return total;
}

std::vector<TensorView> tensors_of(const std::vector<CheckpointParameter>& parameters,
                                   std::span<const float> arena, const std::string& prefix) {
  std::vector<TensorView> tensors;
  for (const CheckpointParameter& parameter : parameters) {
    const std::size_t size = parameter.elements();
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
    const std::size_t size = tensor.elements();
    const std::string wrong = unusable_numbers(tensor.name, weights.first(size));
    if (!wrong.empty()) text += (text.empty() ? "" : ", ") + wrong;
    weights = weights.subspan(size);
  }
  return text;
}

std::string weights_sha256(std::span<const float> weights) {
  return hex(sha256(std::as_bytes(weights)));
}

}  // namespace lockstep
