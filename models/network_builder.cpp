// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// NetworkBuilder: the document, its layers one by one, and what must hold at the end.
#include "models/network_builder.hpp"

#include "common/buffers.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "models/layer_options.hpp"
#include "models/tensor_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
                               UnreadLayers unread, Precision precision, std::span<const LayerKind> own)
    : file_(file), unread_(unread), own_(own) {
  if (input.channels < 1 || input.height < 1 || input.width < 1 || features_of(input) > kMaxFeatures) {
    throw ShapeError(fmt::format("{}: an input of {}x{}x{} is not one to {} numbers", file, input.channels,
                                 input.height, input.width, kMaxFeatures));
  }
  if (classes < 1 || classes > kMaxClasses)
    throw ShapeError(fmt::format("{}: {} classes; expected 1 to {}", file, classes, kMaxClasses));
  std::vector<std::string_view> kinds = all_kinds();
  std::ranges::sort(kinds);
  if (const auto twice = std::ranges::adjacent_find(kinds); twice != kinds.end())
    throw ConfigError(fmt::format("two kinds of layers are called {}; call yours otherwise", *twice));
  network_.input_ = input;
  network_.classes_ = classes;
  network_.precision_ = precision;
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
  place.precision = network_.precision_;
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

// NetworkBuilder: the kind, name and option keys of a layer, checked before anything is made of them.

namespace {

constexpr std::size_t kMaxNameLength = 64;

/// The spellings of other programs' files: softmax, log_softmax, LogSoftmax.
bool is_softmax(std::string name) {
  std::erase(name, '_');
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name == "softmax" || name == "logsoftmax" || name == "softmax2d";
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

}  // namespace

std::vector<std::string_view> NetworkBuilder::all_kinds() const {
  std::vector<std::string_view> kinds;
  for (const LayerKind& kind : layer_catalogue()) kinds.push_back(kind.kind);
  for (const LayerKind& kind : own_) kinds.push_back(kind.kind);
  return kinds;
}

const LayerKind& NetworkBuilder::kind_of(const YAML::Node& entry) const {
  if (!entry.IsScalar() && !(entry.IsMap() && entry.size() == 1)) {
    fail(entry, "a layer must look like '- relu' or '- conv2d: {out: 10, kernel: 5}'");
  }
  const std::string written = entry.IsScalar() ? entry.Scalar() : entry.begin()->first.Scalar();
  const LayerKind* kind = find_layer_kind(written);
  const auto own = std::ranges::find(own_, written, &LayerKind::kind);
  if (kind == nullptr && own != own_.end()) kind = &*own;
  if (kind == nullptr && is_softmax(written)) {
    fail(entry,
         fmt::format(
             "{} is not a layer here: leave it out; the cross-entropy contains it, the binary one a sigmoid, "
             "and the mean squared error takes the last layer's outputs as they are",
             quoted_text(written)));
  }
  if (kind == nullptr) {
    const std::vector<std::string_view> kinds = all_kinds();
    fail(entry, fmt::format("unknown layer {}{}; there are {}", quoted_text(written),
                            did_you_mean(written, kinds), fmt::join(kinds, ", ")));
  }
  return *kind;
}

std::string NetworkBuilder::name_of(const LayerKind& kind, const YAML::Node& options) {
  const int ordinal = ++layers_of_a_kind_[kind.default_name];
  std::string name = fmt::format("{}{}", kind.default_name, ordinal);
  YAML::Mark mark = last_mark_;
  if (options.IsMap()) {
    if (const YAML::Node given = options["name"]; given.IsDefined()) {
      check_identifier(given);
      name = given.Scalar();
      mark = given.Mark();
    }
  }
  const auto [earlier, is_new] = lines_.emplace(name, mark.line + 1);
  if (!is_new) {
    throw config_error(file_, mark,
                       fmt::format("layer {}: line {} has a layer of this name already; write name: ...",
                                   name, earlier->second));
  }
  return name;
}

void NetworkBuilder::check_options(const LayerKind& kind, const YAML::Node& options) const {
  if (options.IsMap()) return check_keys(options, kind.keys, kind.kind);
  if (options.IsNull() || !kind.main_key.empty()) return;
  fail(options, fmt::format("{} takes a map of options: {{{}}}", kind.kind, fmt::join(kind.keys, ", ")));
}

void NetworkBuilder::check_keys(const YAML::Node& map, std::span<const std::string_view> known,
                                std::string_view of) const {
  for (const auto& entry : map) {
    const std::string& key = entry.first.Scalar();
    if (std::ranges::find(known, key) != known.end()) continue;
    fail(entry.first, fmt::format("unknown key {}{}; {} has {}", quoted_text(key), did_you_mean(key, known),
                                  of, fmt::join(known, ", ")));
  }
}

void NetworkBuilder::check_identifier(const YAML::Node& node) const {
  if (node.IsScalar()) {
    const std::string& name = node.Scalar();
    if (!name.empty() && name.size() <= kMaxNameLength && std::ranges::all_of(name, is_name_character))
      return;
  }
  fail(node, fmt::format("a name must be 1 to {} letters, digits, '_', '-' or '.'", kMaxNameLength));
}

}  // namespace lockstep
