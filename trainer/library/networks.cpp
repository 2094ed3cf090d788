// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Networks, with layers of a program's own among Lockstep's.
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "models/device_layer.hpp"
#include "models/layer.hpp"
#include "models/layer_ops.hpp"
#include "trainer/library/inside.hpp"

#include <fmt/format.h>
#include <lockstep/layer.hpp>
#include <lockstep/network.hpp>

namespace lockstep::v0 {

// A layer of a program's own as a network has it.

namespace {

/// Keeps x for backward, and has memory of its own for y and dx.
class OwnLayer final : public lockstep::Layer {
 public:
  OwnLayer(const LayerPlace& place, std::string kind, std::unique_ptr<const v0::Layer> own)
      : lockstep::Layer(place, own->output()), kind_(std::move(kind)), own_(std::move(own)) {
    for (const LayerParameter& parameter : own_->parameters())
      add_parameter(parameter.name, parameter.shape, initial_of(parameter), parameter.fan_in);
  }

  std::string describe() const override { return kind_ + ", the program's own"; }
  LayerOp op() const override { return OwnOp{}; }
  bool needs_input() const override { return true; }
  void forward(const lockstep::LayerPass& pass, const LayerTensors& tensors) const override {
    own_->forward({pass_of(pass, tensors), tensors.y});
  }
  void backward_weights(const lockstep::LayerPass& pass, const LayerTensors& tensors) const override {
    if (!parameters().empty())
      own_->backward_weights({pass_of(pass, tensors), tensors.dy, tensors.gradients, nullptr});
  }
  void backward_data(const lockstep::LayerPass& pass, const LayerTensors& tensors) const override {
    own_->backward_data({pass_of(pass, tensors), tensors.dy, nullptr, tensors.dx});
  }
  DeviceForm device_form() const override {
    throw DeviceError(
        fmt::format("layer {}: {} is the program's own, and no GPU has it; train on CPUs", name(), kind_));
  }

 private:
  static Parameter::Initial initial_of(const LayerParameter& parameter) {
    using From = LayerParameter::Initial;
    if (parameter.initial == From::kZeros) return Parameter::Initial::kZeros;
    return parameter.initial == From::kOnes ? Parameter::Initial::kOnes : Parameter::Initial::kRandom;
  }
  static v0::LayerPass pass_of(const lockstep::LayerPass& pass, const LayerTensors& tensors) {
    return {pass.batch, pass.samples, pass.training, tensors.weights, tensors.x};
  }

  std::string kind_;
  std::unique_ptr<const v0::Layer> own_;
};

void check(const LayerKind& kind, const std::string& layer, const Layer* made) {
  const auto fail = [&](const std::string& cause) {
    throw ShapeError(fmt::format("layer {}: {}, the program's own: {}", layer, kind.name, cause));
  };
  if (made == nullptr) fail("its make() gave nothing");
  const ImageShape& output = made->output();
  if (output.channels < 1 || output.height < 1 || output.width < 1)
    fail(fmt::format("an output of {}x{}x{} has no numbers", output.channels, output.height, output.width));
  for (const LayerParameter& parameter : made->parameters()) {
    std::uint64_t size = parameter.shape.empty() ? 0 : 1;
    for (const int dimension : parameter.shape) size = checked_product(size, dimension);
    if (parameter.name.empty() || size < 1 || size > kMaxParameters || parameter.fan_in < 1)
      fail(fmt::format("parameter '{}' needs a name, a shape of 1 to {} numbers, and a fan_in of 1 or more",
                       parameter.name, kMaxParameters));
  }
}

/// The kinds as the builder takes them. They borrow the texts of `own`.
std::vector<lockstep::LayerKind> own_kinds(const std::vector<LayerKind>& own) {
  std::vector<lockstep::LayerKind> kinds;
  for (const LayerKind& kind : own) {
    if (!kind.make) throw ConfigError(fmt::format("layer kind '{}' has no make()", kind.name));
    std::vector<std::string_view> keys{"name"};
    keys.insert(keys.end(), kind.keys.begin(), kind.keys.end());
    const auto make = [&kind](const lockstep::LayerOptions& options, const LayerPlace& place) {
      const LayerOptions::Inside inside{options};
      std::unique_ptr<const Layer> made = kind.make(place.input, LayerOptions(inside));
      check(kind, place.name, made.get());
      return std::make_unique<OwnLayer>(place, kind.name, std::move(made));
    };
    kinds.push_back({kind.name, kind.name, "", std::move(keys), make});
  }
  return kinds;
}

Network share(lockstep::Network network) {
  return Network(std::make_shared<const Network::Inside>(Network::Inside{std::move(network)}));
}

}  // namespace

double LayerOptions::number(const std::string& key, double least, double most, double fallback) const {
  return inside_.options.number(key, {least, most}, fallback);
}

int LayerOptions::integer(const std::string& key, int least, int most, int fallback) const {
  return inside_.options.integer(key, least, most, fallback);
}

bool LayerOptions::yes_or_no(const std::string& key, bool fallback) const {
  return inside_.options.yes_or_no(key, fallback);
}

Network::Network(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}

Network Network::load(const std::string& source, const ImageShape& input, int classes,
                      const std::vector<LayerKind>& own) {
  return share(lockstep::Network::load(source, input, classes, Precision::kFp32, own_kinds(own)));
}

Network Network::parse(const std::string& yaml, const ImageShape& input, int classes,
                       const std::vector<LayerKind>& own) {
  return share(lockstep::Network::parse(yaml, "network", input, classes, UnreadLayers::kRefused,
                                        Precision::kFp32, own_kinds(own)));
}

const std::string& Network::name() const {
  return inside_->network.name();
}

const ImageShape& Network::input() const {
  return inside_->network.input_shape();
}

int Network::classes() const {
  return inside_->network.classes();
}

std::vector<Tensor> Network::tensors() const {
  std::vector<Tensor> tensors;
  for (const Parameter& tensor : inside_->network.parameters().tensors())
    tensors.push_back({tensor.name, tensor.shape, tensor.offset, tensor.size});
  return tensors;
}

std::string Network::summary() const {
  return inside_->network.summary();
}

const std::string& Network::yaml() const {
  return inside_->network.yaml();
}

}  // namespace lockstep::v0
