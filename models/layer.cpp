// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The parts of a layer that do not depend on its kind.
#include "models/layer.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

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

/// A vector behind those that are there.
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

}  // namespace lockstep
