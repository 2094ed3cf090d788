// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers that join what several layers compute: add, multiply, concat, route; and flatten.
#include "common/text_layout.hpp"
#include "kernels/device_ops.hpp"
#include "models/layers/layer_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace lockstep {
namespace {

/// A layer whose second input is the output of an earlier one.
class BranchLayer : public Layer {
 public:
  std::string describe() const override { return kind_ + (" " + from_.name); }
  std::optional<std::size_t> branch() const override { return from_.index; }

 protected:
  BranchLayer(const char* kind, const LayerPlace& place, const ImageShape& output, EarlierLayer from)
      : Layer(place, output), kind_(kind), from_(std::move(from)) {}

  /// The first so many numbers of dy are the branch's gradient, where one is wanted, or a summand of it.
  static void pass_on(const LayerTensors& tensors, std::size_t size) {
    if (tensors.dbranch == nullptr) return;
    if (tensors.adds_to_dbranch) {
      cpu::add(size, tensors.dbranch, tensors.dy, tensors.dbranch);
    } else {
      std::copy_n(tensors.dy, size, tensors.dbranch);
    }
  }
  static void pass_on(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors, std::size_t size) {
    if (tensors.dbranch == nullptr) return;
    if (tensors.adds_to_dbranch) {
      pass.ops.add(pass.stream, size, tensors.dbranch, tensors.dy, tensors.dbranch);
    } else {
      pass.stream.copy_on_device(tensors.dbranch, tensors.dy, size * sizeof(float));
    }
  }
  const ImageShape& branch_shape() const { return from_.output; }

 private:
  const char* kind_;
  EarlierLayer from_;
};

// The layer `add: {from: NAME}`, also written `add: NAME`: a residual connection.

/// y = x + the output of an earlier layer; the gradient flows to both.
class AddLayer final : public BranchLayer {
 public:
  AddLayer(const LayerPlace& place, EarlierLayer from)
      : BranchLayer("add", place, place.input, std::move(from)) {}
  /// @throws ConfigError, ShapeError  if there is no such layer before this one, or its output has another
  /// shape
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const auto fits = [&](const ImageShape& shape) { return shape == place.input; };
    return std::make_unique<AddLayer>(place,
                                      options.earlier_layer(place.input, fits, to_string(place.input)));
  }

  LayerOp op() const override { return AddOp{}; }
  OutputMemory output_memory() const override { return OutputMemory::kInPlace; }
  bool passes_gradient_to_branch() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    cpu::add(numbers_of(output(), pass.batch), tensors.x, tensors.branch, tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    const std::size_t size = numbers_of(output(), pass.batch);
    if (tensors.dx != tensors.dy) std::copy_n(tensors.dy, size, tensors.dx);
    pass_on(tensors, size);
  }
  DeviceForm device_form() const override { return {.passes_gradient = true}; }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.ops.add(pass.stream, numbers_of(output(), pass.batch), tensors.x, tensors.branch, tensors.y);
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass_on(pass, tensors, numbers_of(output(), pass.batch));
  }
};

// The layer `multiply: {from: NAME}`, also written `multiply: NAME`: a gate.

bool is_vector(const ImageShape& shape) {
  return shape.height == 1 && shape.width == 1;
}

/// y = x times the output of an earlier layer, number by number. One of both may be [channels, 1, 1] and
/// scales each channel of the other. The gradient flows to both.
class MultiplyLayer final : public BranchLayer {
 public:
  MultiplyLayer(const LayerPlace& place, const EarlierLayer& from)
      : BranchLayer("multiply", place, is_vector(place.input) ? from.output : place.input, from),
        same_shape_(place.input == from.output),
        input_scales_(!same_shape_ && is_vector(place.input)) {}
  /// @throws ConfigError, ShapeError  if there is no such layer before this one, or its output does not fit
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const ImageShape& x = place.input;
    const auto fits = [&](const ImageShape& shape) {
      return shape == x || (shape.channels == x.channels && (is_vector(shape) || is_vector(x)));
    };
    const std::string such =
        is_vector(x) ? counted(x.channels, "channel") : fmt::format("{} or {}", to_string(x), x.channels);
    return std::make_unique<MultiplyLayer>(place, options.earlier_layer(x, fits, such));
  }

  LayerOp op() const override { return MultiplyOp{shape_of(1), input_scales_}; }
  bool needs_input() const override { return true; }
  bool needs_branch() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    const float *x = tensors.x, *scale = tensors.branch;
    if (input_scales_) std::swap(x, scale);
    cpu::scale_channels(shape_of(pass.batch), x, scale, false, tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    const ScaleShape shape = shape_of(pass.batch);
    const auto [scaled, scale] = ways_back(tensors);
    if (scaled.to != nullptr) cpu::scale_channels(shape, tensors.dy, scaled.factor, scaled.adds, scaled.to);
    if (scale.to != nullptr) cpu::sum_products(shape, tensors.dy, scale.factor, scale.adds, scale.to);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    const float *x = tensors.x, *scale = tensors.branch;
    if (input_scales_) std::swap(x, scale);
    pass.ops.scale_channels(pass.stream, shape_of(pass.batch), x, scale, false, tensors.y);
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    const ScaleShape shape = shape_of(pass.batch);
    const auto [scaled, scale] = ways_back(tensors);
    if (scaled.to != nullptr)
      pass.ops.scale_channels(pass.stream, shape, tensors.dy, scaled.factor, scaled.adds, scaled.to);
    if (scale.to != nullptr)
      pass.ops.sum_products(pass.stream, shape, tensors.dy, scale.factor, scale.adds, scale.to);
  }

 private:
  /// A gradient is made of dy and the other factor.
  struct WayBack {
    const float* factor;
    float* to;  ///< null: it is not needed
    bool adds;
  };
  /// That of what is scaled, and that of the scale.
  std::pair<WayBack, WayBack> ways_back(const auto& tensors) const {
    const WayBack of_x{tensors.branch, tensors.dx, false},
        of_branch{tensors.x, tensors.dbranch, tensors.adds_to_dbranch};
    return input_scales_ ? std::pair(of_branch, of_x) : std::pair(of_x, of_branch);
  }
  ScaleShape shape_of(int batch) const {
    if (same_shape_) return {batch, output().features(), 1};
    return {batch, output().channels, output().height * output().width};
  }

  bool same_shape_;
  bool input_scales_;
};

// The layer `concat: {from: NAME}`, also written `concat: NAME`: channels of two layers.

/// y = the channels of an earlier layer's output and after them those of x, as torch.cat([earlier, x], 1).
class ConcatLayer final : public BranchLayer {
 public:
  ConcatLayer(const LayerPlace& place, const EarlierLayer& from)
      : BranchLayer("concat", place,
                    {from.output.channels + place.input.channels, place.input.height, place.input.width},
                    from) {}
  /// @throws ConfigError, ShapeError  if there is no such layer before this one, or its output has another
  /// height or width
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const ImageShape& x = place.input;
    const auto fits = [&](const ImageShape& shape) {
      return shape.height == x.height && shape.width == x.width;
    };
    const std::string such = fmt::format("channels of {}x{}", x.height, x.width);
    return std::make_unique<ConcatLayer>(place, options.earlier_layer(x, fits, such));
  }

  LayerOp op() const override { return ConcatOp{}; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    const std::size_t first = numbers_of(branch_shape(), pass.batch);
    std::copy_n(tensors.branch, first, tensors.y);
    std::copy_n(tensors.x, numbers_of(input(), pass.batch), tensors.y + first);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    const std::size_t first = numbers_of(branch_shape(), pass.batch);
    std::copy_n(tensors.dy + first, numbers_of(input(), pass.batch), tensors.dx);
    pass_on(tensors, first);
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    const int first = branch_shape().features(), rest = input().features(), all = output().features();
    pass.ops.copy_features(pass.stream, {pass.batch, first, first, 0, all, 0}, tensors.branch, false,
                           tensors.y);
    pass.ops.copy_features(pass.stream, {pass.batch, rest, rest, 0, all, first}, tensors.x, false, tensors.y);
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    const int first = branch_shape().features(), rest = input().features(), all = output().features();
    pass.ops.copy_features(pass.stream, {pass.batch, rest, all, first, rest, 0}, tensors.dy, false,
                           tensors.dx);
    if (tensors.dbranch == nullptr) return;
    pass.ops.copy_features(pass.stream, {pass.batch, first, all, 0, first, 0}, tensors.dy,
                           tensors.adds_to_dbranch, tensors.dbranch);
  }
};

// The layer `route: {from: NAME}`, also written `route: NAME`: the list goes on from an earlier layer.

/// y = the output of an earlier layer; what comes before is not read, unless a later layer names it.
class RouteLayer final : public BranchLayer {
 public:
  RouteLayer(const LayerPlace& place, const EarlierLayer& from)
      : BranchLayer("route", place, from.output, from) {}
  /// @throws ConfigError  there is no such layer before this one
  static std::unique_ptr<Layer> make(const LayerOptions& options, const LayerPlace& place) {
    const auto fits = [](const ImageShape& /*shape*/) { return true; };
    return std::make_unique<RouteLayer>(place, options.earlier_layer(place.input, fits, ""));
  }

  LayerOp op() const override { return RouteOp{}; }
  bool reads_layer_before() const override { return false; }
  bool passes_gradient_to_branch() const override { return true; }
  void forward(const LayerPass& pass, const LayerTensors& tensors) const override {
    std::copy_n(tensors.branch, numbers_of(output(), pass.batch), tensors.y);
  }
  void backward_data(const LayerPass& pass, const LayerTensors& tensors) const override {
    std::fill_n(tensors.dx, numbers_of(input(), pass.batch), 0.0F);
    pass_on(tensors, numbers_of(output(), pass.batch));
  }
  void device_forward(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.stream.copy_on_device(tensors.y, tensors.branch, numbers_of(output(), pass.batch) * sizeof(float));
  }
  void device_backward_data(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors) const override {
    pass.stream.fill_zero(tensors.dx, numbers_of(input(), pass.batch) * sizeof(float));
    pass_on(pass, tensors, numbers_of(output(), pass.batch));
  }
};

// The layer `flatten`: [channels, height, width] becomes a plain vector of features. Nothing moves in
// memory, and `linear` does it by itself; it is there for networks that write it.

class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const LayerPlace& place) : Layer(place, {place.input.features(), 1, 1}) {}

  std::string describe() const override { return "flatten"; }
  LayerOp op() const override { return ViewOp{}; }
  OutputMemory output_memory() const override { return OutputMemory::kView; }
  void forward(const LayerPass& /*pass*/, const LayerTensors& /*tensors*/) const override {}
  void backward_data(const LayerPass& /*pass*/, const LayerTensors& /*tensors*/) const override {}
  DeviceForm device_form() const override { return DeviceForm::nothing(); }
};

}  // namespace

std::vector<LayerKind> wiring_kinds() {
  return {
      {"add", "add", "from", {"name", "from"}, AddLayer::make},
      {"multiply", "multiply", "from", {"name", "from"}, MultiplyLayer::make},
      {"concat", "concat", "from", {"name", "from"}, ConcatLayer::make},
      {"route", "route", "from", {"name", "from"}, RouteLayer::make},
      {"flatten", "flatten", "", {"name"}, make_without_options<FlattenLayer>},
  };
}

}  // namespace lockstep
