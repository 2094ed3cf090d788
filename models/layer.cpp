// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parts of a layer that do not depend on its kind.
#include "models/layer.hpp"

#include "models/batch_layer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace lockstep {

Layer::Layer(LayerPlace place, const ImageShape& output) : place_(std::move(place)), output_(output) {}

namespace {

std::size_t total_size(const std::vector<Parameter>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::size_t{0},
                         [](std::size_t sum, const Parameter& tensor) { return sum + tensor.size; });
}

/// Appends a tensor. @param offset  that of the first one
void append(std::vector<Parameter>& tensors, std::size_t offset, const std::string& name,
            const std::vector<int>& shape, Parameter::Initial initial, int fan_in) {
  const std::size_t size = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  tensors.push_back({name, shape, offset + total_size(tensors), size, fan_in, initial});
}

}  // namespace

std::size_t Layer::parameter_size() const {
  return total_size(parameters_);
}

void Layer::add_parameter(const std::string& what, const std::vector<int>& shape, Parameter::Initial initial,
                          int fan_in) {
  append(parameters_, parameter_offset(), name() + "." + what, shape, initial, fan_in);
}

void Layer::add_kept(const std::string& what, int size, Parameter::Initial initial) {
  append(kept_, kept_offset(), name() + "." + what, {size}, initial, 0);
}

std::vector<int> dimensions_of(const ImageShape& shape) {
  if (shape.height == 1 && shape.width == 1) return {shape.channels};
  return {shape.channels, shape.height, shape.width};
}

std::string to_string(const ImageShape& shape) {
  return fmt::format("{}", fmt::join(dimensions_of(shape), "x"));
}

// Layers that cut a network, and the places of their statistics.

std::vector<Cut> cuts_of(const Network& network) {
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < network.layers().size(); ++i)
    if (const BatchLayer* over_batch = network.layers()[i]->over_batch()) cuts.push_back({i, over_batch});
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
