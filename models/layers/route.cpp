// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// RouteLayer: its option, and copies.
#include "models/layers/route.hpp"

#include <algorithm>

namespace lockstep {

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
    pass.ops.add(size, tensors.dbranch, tensors.dy, tensors.dbranch);
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
