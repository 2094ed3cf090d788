// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers without arithmetic of their own.
#include "models/layers/wiring.hpp"

#include <algorithm>

namespace lockstep {

// AddLayer: its option, and the calls of its op.

std::unique_ptr<Layer> AddLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const EarlierLayer from = options.earlier_layer("from", place.input);
  return std::make_unique<AddLayer>(place, from.name, from.index);
}

void AddLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  cpu::add(size_of(pass.batch), tensors.x, tensors.branch, tensors.y);
}

void AddLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  const std::size_t size = size_of(pass.batch);
  if (tensors.dx != tensors.dy) std::copy_n(tensors.dy, size, tensors.dx);
  if (tensors.dbranch == nullptr) return;
  if (tensors.adds_to_dbranch) {
    cpu::add(size, tensors.dbranch, tensors.dy, tensors.dbranch);
  } else {
    std::copy_n(tensors.dy, size, tensors.dbranch);
  }
}

void AddLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.ops.add(pass.stream, size_of(pass.batch), tensors.x, tensors.branch, tensors.y);
}

void AddLayer::device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  if (tensors.dbranch == nullptr) return;
  const std::size_t size = size_of(pass.batch);
  if (tensors.adds_to_dbranch) {
    pass.ops.add(pass.stream, size, tensors.dbranch, tensors.dy, tensors.dbranch);
  } else {
    pass.stream.copy_on_device(tensors.dbranch, tensors.dy, size * sizeof(float));
  }
}

// RouteLayer: its option, and copies.

std::unique_ptr<Layer> RouteLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const EarlierLayer from = options.earlier_layer("from");
  return std::make_unique<RouteLayer>(place, from.name, from.index, from.output);
}

void RouteLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  std::copy_n(tensors.branch, size_of(output(), pass.batch), tensors.y);
}

void RouteLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  std::fill_n(tensors.dx, size_of(input(), pass.batch), 0.0F);
  if (tensors.dbranch == nullptr) return;
  const std::size_t size = size_of(output(), pass.batch);
  if (tensors.adds_to_dbranch) {
    cpu::add(size, tensors.dbranch, tensors.dy, tensors.dbranch);
  } else {
    std::copy_n(tensors.dy, size, tensors.dbranch);
  }
}

void RouteLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.stream.copy_on_device(tensors.y, tensors.branch, size_of(output(), pass.batch) * sizeof(float));
}

void RouteLayer::device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  pass.stream.fill_zero(tensors.dx, size_of(input(), pass.batch) * sizeof(float));
  if (tensors.dbranch == nullptr) return;
  const std::size_t size = size_of(output(), pass.batch);
  if (tensors.adds_to_dbranch) {
    pass.ops.add(pass.stream, size, tensors.dbranch, tensors.dy, tensors.dbranch);
  } else {
    pass.stream.copy_on_device(tensors.dbranch, tensors.dy, size * sizeof(float));
  }
}

}  // namespace lockstep
