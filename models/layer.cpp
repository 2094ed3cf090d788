// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parts of a layer that do not depend on its kind.
#include "models/layer.hpp"

#include "common/error.hpp"
#include "models/batch_layer.hpp"
#include "models/device_layer.hpp"

#include <fmt/format.h>

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

/// A vector after those that are there.
void append(std::vector<Parameter>& tensors, const std::string& name, int size, std::size_t offset,
            Parameter::Initial initial) {
  tensors.push_back({.name = name,
                     .shape = {size},
                     .offset = offset + total_size(tensors),
                     .size = static_cast<std::size_t>(size),
                     .initial = initial});
}

}  // namespace

std::size_t Layer::parameter_size() const {
  return total_size(parameters_);
}

void Layer::add_parameter(const std::string& what, int size, Parameter::Initial initial) {
  append(parameters_, name() + "." + what, size, parameter_offset(), initial);
}

void Layer::add_parameter(const std::string& what, const std::vector<int>& shape, Parameter::Initial initial,
                          int fan_in) {
  add_parameter(what, std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()), initial);
  parameters_.back().shape = shape;
  parameters_.back().fan_in = fan_in;
}

void Layer::add_kept(const std::string& what, int size, Parameter::Initial initial) {
  append(kept_, name() + "." + what, size, kept_offset(), initial);
}

void Layer::device_forward(const DeviceLayerPass& /*pass*/, const DeviceLayerTensors& /*tensors*/) const {
  LOCKSTEP_CHECK(!"a stage of its own");
}

void Layer::device_backward_weights(const DeviceLayerPass& /*pass*/,
                                    const DeviceLayerTensors& /*tensors*/) const {
  LOCKSTEP_CHECK(!"a stage with parameters");
}

void Layer::device_backward_data(const DeviceLayerPass& /*pass*/,
                                 const DeviceLayerTensors& /*tensors*/) const {
  LOCKSTEP_CHECK(!"a stage of its own");
}

void Layer::add_weight(const std::vector<int>& shape, int fan_in) {
  const std::size_t size = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  parameters_.push_back({name() + ".weight", shape, parameter_offset(), size, fan_in});
}

void Layer::add_bias(int outputs, int fan_in) {
  add_parameter("bias", outputs, Parameter::Initial::kRandom);
  parameters_.back().fan_in = fan_in;
}

std::string to_string(const ImageShape& shape) {
  if (shape.height == 1 && shape.width == 1) return std::to_string(shape.channels);
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

// Layers that cut a network, and the places of their statistics.

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
