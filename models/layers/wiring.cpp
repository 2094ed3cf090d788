// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that join what several layers compute: their options, and the calls of their ops.
#include "models/layers/wiring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// MultiplyLayer: its option, and the calls of its ops. The larger of both, or x, is what the other one scales.

namespace {

bool is_vector(const ImageShape& shape) {
  return shape.height == 1 && shape.width == 1;
}

}  // namespace

MultiplyLayer::MultiplyLayer(const LayerPlace& place, const EarlierLayer& from)
    : Layer(place, is_vector(place.input) ? from.output : place.input),
      from_(from.name),
      branch_(from.index),
      same_shape_(place.input == from.output),
      input_scales_(!same_shape_ && is_vector(place.input)) {}

std::unique_ptr<Layer> MultiplyLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const ImageShape& x = place.input;
  const auto fits = [&](const ImageShape& shape) {
    return shape == x || (shape.channels == x.channels && (is_vector(shape) || is_vector(x)));
  };
  const std::string such = is_vector(x) ? fmt::format("{} channels", x.channels)
                                        : fmt::format("{} or {}", to_string(x), x.channels);
  return std::make_unique<MultiplyLayer>(place, options.earlier_layer("from", x, fits, such));
}

ScaleShape MultiplyLayer::shape_of(int batch) const {
  if (same_shape_) return {batch, output().features(), 1};
  return {batch, output().channels, output().height * output().width};
}

void MultiplyLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  const float *x = tensors.x, *scale = tensors.branch;
  if (input_scales_) std::swap(x, scale);
  cpu::scale_channels(shape_of(pass.batch), x, scale, false, tensors.y);
}

void MultiplyLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  const ScaleShape shape = shape_of(pass.batch);
  const bool adds = tensors.adds_to_dbranch;
  if (input_scales_) {
    cpu::sum_products(shape, tensors.dy, tensors.branch, false, tensors.dx);
    if (tensors.dbranch != nullptr) cpu::scale_channels(shape, tensors.dy, tensors.x, adds, tensors.dbranch);
  } else {
    cpu::scale_channels(shape, tensors.dy, tensors.branch, false, tensors.dx);
    if (tensors.dbranch != nullptr) cpu::sum_products(shape, tensors.dy, tensors.x, adds, tensors.dbranch);
  }
}

void MultiplyLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  const float *x = tensors.x, *scale = tensors.branch;
  if (input_scales_) std::swap(x, scale);
  pass.ops.scale_channels(pass.stream, shape_of(pass.batch), x, scale, false, tensors.y);
}

void MultiplyLayer::device_backward_data(const DeviceLayerPass& pass,
                                         const DeviceLayerTensors& tensors) const {
  const ScaleShape shape = shape_of(pass.batch);
  const bool adds = tensors.adds_to_dbranch, wanted = tensors.dbranch != nullptr;
  DeviceOps& ops = pass.ops;
  if (input_scales_) {
    ops.sum_products(pass.stream, shape, tensors.dy, tensors.branch, false, tensors.dx);
    if (wanted) ops.scale_channels(pass.stream, shape, tensors.dy, tensors.x, adds, tensors.dbranch);
  } else {
    ops.scale_channels(pass.stream, shape, tensors.dy, tensors.branch, false, tensors.dx);
    if (wanted) ops.sum_products(pass.stream, shape, tensors.dy, tensors.x, adds, tensors.dbranch);
  }
}

// ConcatLayer: its option, and copies.

ConcatLayer::ConcatLayer(const LayerPlace& place, const EarlierLayer& from)
    : Layer(place, {from.output.channels + place.input.channels, place.input.height, place.input.width}),
      from_(from.name),
      branch_(from.index) {}

std::unique_ptr<Layer> ConcatLayer::make(const LayerOptions& options, const LayerPlace& place) {
  const ImageShape& x = place.input;
  const auto fits = [&](const ImageShape& shape) {
    return shape.height == x.height && shape.width == x.width;
  };
  const std::string such = fmt::format("channels of {}x{}", x.height, x.width);
  return std::make_unique<ConcatLayer>(place, options.earlier_layer("from", x, fits, such));
}

void ConcatLayer::forward(const LayerPass& pass, const LayerTensors& tensors) const {
  const std::size_t first = std::size_t{1} * branch_features() * pass.batch;
  std::copy_n(tensors.branch, first, tensors.y);
  std::copy_n(tensors.x, std::size_t{1} * input().features() * pass.batch, tensors.y + first);
}

void ConcatLayer::backward_data(const LayerPass& pass, const LayerTensors& tensors) const {
  const std::size_t first = std::size_t{1} * branch_features() * pass.batch;
  std::copy_n(tensors.dy + first, std::size_t{1} * input().features() * pass.batch, tensors.dx);
  if (tensors.dbranch == nullptr) return;
  if (tensors.adds_to_dbranch) {
    cpu::add(first, tensors.dbranch, tensors.dy, tensors.dbranch);
  } else {
    std::copy_n(tensors.dy, first, tensors.dbranch);
  }
}

void ConcatLayer::device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  const int first = branch_features(), rest = input().features(), all = output().features();
  pass.ops.copy_features(pass.stream, {pass.batch, first, first, 0, all, 0}, tensors.branch, false,
                         tensors.y);
  pass.ops.copy_features(pass.stream, {pass.batch, rest, rest, 0, all, first}, tensors.x, false, tensors.y);
}

void ConcatLayer::device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const {
  const int first = branch_features(), rest = input().features(), all = output().features();
  pass.ops.copy_features(pass.stream, {pass.batch, rest, all, first, rest, 0}, tensors.dy, false, tensors.dx);
  if (tensors.dbranch == nullptr) return;
  pass.ops.copy_features(pass.stream, {pass.batch, first, all, 0, first, 0}, tensors.dy,
                         tensors.adds_to_dbranch, tensors.dbranch);
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
