// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the YAML of a network to its layers, shapes inferred on the way. It checks what must hold at the end.
#include "common/buffers.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"
#include "models/network.hpp"
#include "models/tensor_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

constexpr std::size_t kMaxNameLength = 64;
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/// Before it is known that ImageShape::features may be asked.
std::uint64_t features_of(const ImageShape& shape) {
  return checked_product(shape.channels, shape.height, shape.width);
}

/// The spellings of other programs' files: softmax, log_softmax, LogSoftmax.
bool is_softmax(std::string name) {
  std::erase(name, '_');
  name = in_small_letters(name);
  return name == "softmax" || name == "logsoftmax" || name == "softmax2d";
}

}  // namespace

/// Builds one network; use once. The file looks like this (`name`, `init` and the options in brackets may be
/// missing):
///
///     name: net
///     init: default            # or {normal: 0.01}
///     layers:
///       - conv2d: {name: conv1, out: 10, kernel: 5}     # kernel: [height, width]; stride: 1; padding: 0; bias: true
///       - max_pool: 2                                   # {kernel: 2, stride: 2, padding: 0}; also avg_pool
///       - batch_norm                                    # {eps: 1e-5, momentum: 0.1, affine: true}
///       - relu
///       - dropout: 0.5                                  # {p: 0.5}; also dropout2d
///       - linear: classes                               # {out: classes, bias: true}
class NetworkBuilder {
 public:
  /// Borrows `file`, which is for messages, and `own`, the kinds that the catalogue lacks.
  /// @throws ConfigError  the catalogue has one of that name, or two are called the same
  NetworkBuilder(const std::string& file, const ImageShape& input, int classes, UnreadLayers unread,
                 Precision precision, std::span<const LayerKind> own)
      : file_(file), unread_(unread), own_(own) {
    if (input.channels < 1 || input.height < 1 || input.width < 1 || features_of(input) > kMaxFeatures)
      throw ShapeError(fmt::format("{}: an input of {}x{}x{} is not one to {} numbers", file, input.channels,
                                   input.height, input.width, kMaxFeatures));
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

  /// @throws ConfigError, ShapeError  see Network::load
  Network build(const std::string& yaml) {
    network_.yaml_ = yaml;
    const YAML::Node document = load_strict_yaml(yaml, file_);
    if (!document.IsMap()) fail(document, "a network file must be a map with 'layers: [...]'");
    check_keys(document, {"name", "init", "layers"}, "a network");
    read_name(document["name"]);
    read_initialisation(document["init"]);
    const YAML::Node layers = document["layers"];
    if (!layers.IsDefined())
      fail(document, "'layers' is missing; write layers: and one '- ...' line for each layer");
    if (!layers.IsSequence() || layers.size() == 0)
      fail(layers, "'layers' must be a list with at least one layer");
    if (layers.size() > kMaxLayers)
      fail(layers, fmt::format("{} layers are too many; at most {}", layers.size(), kMaxLayers));
    for (const YAML::Node& entry : layers) add_layer(entry);
    for (Parameter& tensor : network_.parameters_.kept) tensor.offset += network_.parameters_.size;
    check_end(layers);
    if (unread_ == UnreadLayers::kRefused) check_readers();
    return std::move(network_);
  }

 private:
  void read_name(const YAML::Node& node) {
    network_.name_ = std::filesystem::path(file_).stem().string();
    if (!node.IsDefined()) return;
    check_identifier(node);
    network_.name_ = node.Scalar();
  }

  void read_initialisation(const YAML::Node& node) {
    if (!node.IsDefined() || (node.IsScalar() && node.Scalar() == "default")) return;
    const YAML::Node deviation = node.IsMap() ? node["normal"] : YAML::Node(YAML::NodeType::Undefined);
    if (node.IsMap()) check_keys(node, {"normal"}, "init");
    if (!deviation.IsDefined()) fail(node, "init must be default or {normal: 0.01}");
    const auto value = deviation.IsScalar() ? parse_double(deviation.Scalar()) : std::nullopt;
    if (!value || *value > 1000 || static_cast<float>(*value) <= 0)
      fail(deviation, fmt::format("init: normal must be a number above 0, at most 1000{}",
                                  deviation.IsScalar() ? fp32_hint(deviation.Scalar()) : ""));
    network_.normal_std_ = *value;
  }

  void add_layer(const YAML::Node& entry) {
    marks_.push_back(entry.Mark());
    const LayerKind& kind = kind_of(entry);
    const YAML::Node options = entry.IsMap() ? entry.begin()->second : YAML::Node();
    check_options(kind, options);
    const auto& layers = network_.layers_;
    const LayerPlace place{.name = name_of(kind, options),
                           .index = static_cast<std::uint32_t>(layers.size()),
                           .input = layers.empty() ? network_.input_ : layers.back()->output(),
                           .parameter_offset = network_.parameters_.size,
                           .kept_offset = network_.parameters_.kept_size,
                           .precision = network_.precision_};
    const LayerOptions reader({file_, place.name, marks_.back(), network_.classes_, layers}, options,
                              kind.main_key);
    append(kind.make(reader, place), reader);
  }

  void append(std::unique_ptr<Layer> layer, const LayerOptions& options) {
    const ImageShape& shape = layer->output();
    if (features_of(shape) > kMaxFeatures)
      options.fail_shape(fmt::format("an output of {}x{}x{} is more than the {} numbers a layer may have",
                                     shape.channels, shape.height, shape.width, kMaxFeatures));
    ParameterLayout& layout = network_.parameters_;
    for (const auto* tensors : {&layer->parameters(), &layer->kept()})
      for (const Parameter& tensor : *tensors)
        if (!tensor_names_.insert(tensor.name).second)
          options.fail_shape(fmt::format("two tensors are called {}; give each its own name", tensor.name));
    layout.size += layer->parameter_size();
    options.require_weights(layout.size);
    layout.parameters.insert(layout.parameters.end(), layer->parameters().begin(), layer->parameters().end());
    layout.kept.insert(layout.kept.end(), layer->kept().begin(), layer->kept().end());
    for (const Parameter& tensor : layer->kept()) layout.kept_size += tensor.size;
    network_.layers_.push_back(std::move(layer));
  }

  void check_end(const YAML::Node& layers) const {
    if (network_.parameters_.size == 0) fail(layers, "nothing to train: add a conv2d or linear layer");
    const Layer& last = *network_.layers_.back();
    if (const ImageShape& shape = last.output(); shape.features() != network_.classes_)
      fail_shape(
          fmt::format("layer {}: the network ends with an output of {}, but the data has {}; "
                      "end with '- linear: classes'",
                      last.name(), to_string(shape), counted(network_.classes_, "class")));
    // backward reads the output of most activations, and by then the logits are overwritten with their gradient.
    const std::vector<std::size_t> tensors = output_tensors(network_.layers_);
    for (std::size_t i = tensors.size(); i-- > 0 && tensors[i] == tensors.back();) {
      const Layer& layer = *network_.layers_[i];
      if (layer.may_be_last()) continue;
      fail_shape(
          fmt::format("layer {}: a network cannot end with {}, logits need both signs and any "
                      "size; end with '- linear: classes'",
                      layer.name(), layer.describe()));
    }
  }

  /// Every layer but the last has a reader. That is the one after it, unless that is a `route`, or one that names it.
  void check_readers() const {
    const auto& layers = network_.layers_;
    std::vector<bool> is_read = layers_that_branch(layers);
    is_read.back() = true;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (is_read[i] || layers[i + 1]->reads_layer_before()) continue;
      const std::string& name = layers[i]->name();
      throw config_error(
          file_, marks_[i],
          fmt::format("layer {}: nothing reads its output, because {} goes on from elsewhere; name it "
                      "behind that, as in '- add: {}', or leave it out",
                      name, layers[i + 1]->name(), name));
    }
  }

  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const {
    throw config_error(file_, node.Mark(), message);
  }
  /// At the last layer.
  [[noreturn]] void fail_shape(const std::string& message) const {
    throw ShapeError(config_error(file_, marks_.back(), message).what());
  }

  // The kind, name and option keys of a layer, checked before anything is made of them.

  std::vector<std::string_view> all_kinds() const {
    std::vector<std::string_view> kinds;
    for (const auto some : {layer_catalogue(), own_})
      for (const LayerKind& kind : some) kinds.push_back(kind.kind);
    return kinds;
  }

  const LayerKind& kind_of(const YAML::Node& entry) const {
    if (!entry.IsScalar() && !(entry.IsMap() && entry.size() == 1))
      fail(entry, "a layer must look like '- relu' or '- conv2d: {out: 10, kernel: 5}'");
    const std::string written = entry.IsScalar() ? entry.Scalar() : entry.begin()->first.Scalar();
    for (const auto kinds : {layer_catalogue(), own_})
      if (const auto found = std::ranges::find(kinds, written, &LayerKind::kind); found != kinds.end())
        return *found;
    if (is_softmax(written))
      fail(entry, fmt::format("{} is not a layer here: leave it out; the cross-entropy contains it, the "
                              "binary one a sigmoid, "
                              "and the mean squared error takes the last layer's outputs as they are",
                              quoted_text(written)));
    const std::vector<std::string_view> kinds = all_kinds();
    fail(entry, fmt::format("unknown layer {}{}; there are {}", quoted_text(written),
                            did_you_mean(written, kinds), fmt::join(kinds, ", ")));
  }

  std::string name_of(const LayerKind& kind, const YAML::Node& options) {
    std::string name = fmt::format("{}{}", kind.default_name, ++layers_of_a_kind_[kind.default_name]);
    YAML::Mark mark = marks_.back();
    if (options.IsMap()) {
      if (const YAML::Node given = options["name"]; given.IsDefined()) {
        check_identifier(given);
        name = given.Scalar();
        mark = given.Mark();
      }
    }
    const auto [earlier, is_new] = lines_.emplace(name, mark.line + 1);
    if (!is_new)
      throw config_error(file_, mark,
                         fmt::format("layer {}: line {} has a layer of this name already; write name: ...",
                                     name, earlier->second));
    return name;
  }

  void check_options(const LayerKind& kind, const YAML::Node& options) const {
    if (options.IsMap()) return check_keys(options, kind.keys, kind.kind);
    if (options.IsNull() || !kind.main_key.empty()) return;
    fail(options, fmt::format("{} takes a map of options: {{{}}}", kind.kind, fmt::join(kind.keys, ", ")));
  }

  void check_keys(const YAML::Node& map, const std::vector<std::string_view>& known,
                  std::string_view of) const {
    for (const auto& entry : map) {
      const std::string& key = entry.first.Scalar();
      if (std::ranges::find(known, key) != known.end()) continue;
      fail(entry.first, fmt::format("unknown key {}{}; {} has {}", quoted_text(key), did_you_mean(key, known),
                                    of, fmt::join(known, ", ")));
    }
  }

  void check_identifier(const YAML::Node& node) const {
    const std::string& name = node.IsScalar() ? node.Scalar() : "";
    if (name.empty() || name.size() > kMaxNameLength || name.find_first_not_of(kNameCharacters) != name.npos)
      fail(node, fmt::format("a name must be 1 to {} letters, digits, '_', '-' or '.'", kMaxNameLength));
  }

  const std::string& file_;
  UnreadLayers unread_;
  std::span<const LayerKind> own_;
  Network network_;
  std::vector<YAML::Mark> marks_;                     ///< begin of each layer
  std::map<std::string, int> lines_;                  ///< layer name → line, counted from 1
  std::set<std::string> tensor_names_;                ///< a program's own layers may call theirs as they like
  std::map<std::string_view, int> layers_of_a_kind_;  ///< default name → how many so far
};

Network Network::parse(const std::string& yaml, const std::string& file, const ImageShape& input, int classes,
                       UnreadLayers unread, Precision precision, std::span<const LayerKind> own) {
  return NetworkBuilder(file, input, classes, unread, precision, own).build(yaml);
}

}  // namespace lockstep
