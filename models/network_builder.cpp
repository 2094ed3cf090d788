// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// NetworkBuilder: the document, its layers one by one, and what must hold at the end.
#include "models/network_builder.hpp"

#include "common/checked_size.hpp"
#include "common/text/text_layout.hpp"
#include "common/yaml/scalar.hpp"
#include "common/yaml/strict_yaml.hpp"
#include "models/limits.hpp"
#include "models/tensor_sharing.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kDocumentKeys{"name", "init", "layers"};
constexpr std::array<std::string_view, 1> kInitKeys{"normal"};

/// Before it is known that ImageShape::features may be asked.
std::uint64_t features_of(const ImageShape& shape) {
  return checked_product(shape.channels, shape.height, shape.width);
}

}  // namespace

NetworkBuilder::NetworkBuilder(const std::string& file, const ImageShape& input, int classes,
                               UnreadLayers unread)
    : file_(file), unread_(unread) {
  if (input.channels < 1 || input.height < 1 || input.width < 1 || features_of(input) > kMaxFeatures) {
    throw ShapeError(fmt::format("{}: an input of {}x{}x{} is not one to {} numbers", file, input.channels,
                                 input.height, input.width, kMaxFeatures));
  }
  if (classes < 1 || classes > kMaxClasses)
    throw ShapeError(fmt::format("{}: {} classes; expected 1 to {}", file, classes, kMaxClasses));
  network_.input_ = input;
  network_.classes_ = classes;
}

Network NetworkBuilder::build(const YAML::Node& document) {
  if (!document.IsMap()) fail(document, "a network file must be a map with 'layers: [...]'");
  check_keys(document, kDocumentKeys, "a network");
  read_name(document["name"]);
  read_initialisation(document["init"]);
  const YAML::Node layers = document["layers"];
  if (!layers.IsDefined())
    fail(document, "'layers' is missing; write layers: and one '- ...' line for each layer");
  if (!layers.IsSequence() || layers.size() == 0)
    fail(layers, "'layers' must be a list with at least one layer");
  if (layers.size() > kMaxLayers) {
    fail(layers, fmt::format("{} layers are too many; at most {}", layers.size(), kMaxLayers));
  }
  for (const YAML::Node& entry : layers) add_layer(entry);
  for (Parameter& tensor : network_.parameters_.kept) tensor.offset += network_.parameters_.size;
  check_end(layers);
  if (unread_ == UnreadLayers::kRefused) check_readers();
  return std::move(network_);
}

void NetworkBuilder::read_name(const YAML::Node& node) {
  network_.name_ = std::filesystem::path(file_).stem().string();
  if (!node.IsDefined()) return;
  check_identifier(node);
  network_.name_ = node.Scalar();
}

void NetworkBuilder::read_initialisation(const YAML::Node& node) {
  if (!node.IsDefined() || (node.IsScalar() && node.Scalar() == "default")) return;
  if (!node.IsMap()) fail(node, "init must be default or {normal: 0.01}");
  check_keys(node, kInitKeys, "init");
  const YAML::Node deviation = node["normal"];
  if (!deviation.IsDefined()) fail(node, "init must be default or {normal: 0.01}");
  const auto value = deviation.IsScalar() ? parse_double(deviation.Scalar()) : std::nullopt;
  if (!value || *value > 1000 || static_cast<float>(*value) <= 0)
    fail(deviation, fmt::format("init: normal must be a number above 0, at most 1000{}",
                                deviation.IsScalar() ? fp32_hint(deviation.Scalar()) : ""));
  network_.normal_std_ = *value;
}

void NetworkBuilder::add_layer(const YAML::Node& entry) {
  last_mark_ = entry.Mark();
  marks_.push_back(last_mark_);
  const LayerKind& kind = kind_of(entry);
  const YAML::Node options = entry.IsMap() ? entry.begin()->second : YAML::Node();
  check_options(kind, options);
  LayerPlace place;
  place.name = name_of(kind, options);
  place.index = static_cast<std::uint32_t>(network_.layers_.size());
  place.input = shape_so_far();
  place.parameter_offset = network_.parameters_.size;
  place.kept_offset = network_.parameters_.kept_size;
  const LayerOptions reader({file_, place.name, last_mark_, network_.classes_, network_.layers_}, options,
                            kind.main_key);
  append(kind.make(reader, place), reader);
}

void NetworkBuilder::append(std::unique_ptr<Layer> layer, const LayerOptions& options) {
  const ImageShape& shape = layer->output();
  if (features_of(shape) > kMaxFeatures) {
    options.fail_shape(fmt::format("an output of {}x{}x{} is more than the {} numbers a layer may have",
                                   shape.channels, shape.height, shape.width, kMaxFeatures));
  }
  ParameterLayout& layout = network_.parameters_;
  layout.size += layer->parameter_size();
  options.require_weights(layout.size);
  layout.parameters.insert(layout.parameters.end(), layer->parameters().begin(), layer->parameters().end());
  layout.kept.insert(layout.kept.end(), layer->kept().begin(), layer->kept().end());
  for (const Parameter& tensor : layer->kept()) layout.kept_size += tensor.size;
  network_.layers_.push_back(std::move(layer));
}

void NetworkBuilder::check_end(const YAML::Node& layers) const {
  if (network_.parameters_.size == 0) fail(layers, "nothing to train: add a conv2d or linear layer");
  const Layer& last = *network_.layers_.back();
  if (const ImageShape& shape = last.output(); shape.features() != network_.classes_) {
    fail_shape(last_mark_,
               fmt::format("layer {}: the network ends with an output of {}, but the data has {}; "
                           "end with '- linear: classes'",
                           last.name(), to_string(shape), counted(network_.classes_, "class")));
  }
  // backward reads the output of most activations, and by then the logits are overwritten with their gradient.
  const std::vector<std::size_t> tensors = output_tensors(network_.layers_);
  for (std::size_t i = tensors.size(); i-- > 0 && tensors[i] == tensors.back();) {
    const Layer& layer = *network_.layers_[i];
    if (layer.may_be_last()) continue;
    fail_shape(last_mark_,
               fmt::format("layer {}: a network cannot end with {}, logits need both signs and any "
                           "size; end with '- linear: classes'",
                           layer.name(), layer.describe()));
  }
}

void NetworkBuilder::check_readers() const {
  const auto& layers = network_.layers_;
  std::vector<bool> is_read(layers.size());
  is_read.back() = true;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (const auto branch = layers[i]->branch()) is_read[*branch] = true;
    if (i > 0 && layers[i]->reads_layer_before()) is_read[i - 1] = true;
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (is_read[i]) continue;
    const std::string& name = layers[i]->name();
    throw config_error(
        file_, marks_[i],
        fmt::format("layer {}: nothing reads its output, because {} goes on from elsewhere; name it "
                    "behind that, as in '- add: {}', or leave it out",
                    name, layers[i + 1]->name(), name));
  }
}

const ImageShape& NetworkBuilder::shape_so_far() const {
  return network_.layers_.empty() ? network_.input_ : network_.layers_.back()->output();
}

void NetworkBuilder::fail(const YAML::Node& node, const std::string& message) const {
  throw config_error(file_, node.Mark(), message);
}

void NetworkBuilder::fail_shape(const YAML::Mark& mark, const std::string& message) const {
  throw ShapeError(config_error(file_, mark, message).what());
}

}  // namespace lockstep
