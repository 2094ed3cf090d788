// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the YAML of a network to its layers, shapes inferred on the way.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"
#include "models/network.hpp"

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The kinds of layers that a network file may name.

struct LayerKind {
  std::string_view kind;                   ///< as in YAML: "max_pool"
  std::string_view default_name;           ///< "pool": layers without a name are pool1, pool2, ...
  std::string_view main_key;               ///< the option meant by `max_pool: 2`; empty: there is none
  std::span<const std::string_view> keys;  ///< all options
  std::function<std::unique_ptr<Layer>(const LayerOptions& options, const LayerPlace& place)> make;
};

/// All kinds, in the order in which messages list them.
std::span<const LayerKind> layer_catalogue();
/// Null if there is no such kind.
const LayerKind* find_layer_kind(std::string_view kind);

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
                 Precision precision, std::span<const LayerKind> own = {});
  /// @throws ConfigError, ShapeError  see Network::load
  Network build(const YAML::Node& document);

 private:
  void read_name(const YAML::Node& node);
  void read_initialisation(const YAML::Node& node);
  void add_layer(const YAML::Node& entry);
  void append(std::unique_ptr<Layer> layer, const LayerOptions& options);
  void check_end(const YAML::Node& layers) const;
  /// Every layer but the last has a reader. That is the one after it, unless that is a `route`, or one that names it.
  void check_readers() const;

  std::vector<std::string_view> all_kinds() const;
  const LayerKind& kind_of(const YAML::Node& entry) const;
  std::string name_of(const LayerKind& kind, const YAML::Node& options);
  void check_options(const LayerKind& kind, const YAML::Node& options) const;
  void check_keys(const YAML::Node& map, std::span<const std::string_view> known, std::string_view of) const;
  void check_identifier(const YAML::Node& node) const;
  const ImageShape& shape_so_far() const;
  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const;
  [[noreturn]] void fail_shape(const YAML::Mark& mark, const std::string& message) const;

  const std::string& file_;
  UnreadLayers unread_;
  std::span<const LayerKind> own_;
  Network network_;
  std::vector<YAML::Mark> marks_;                     ///< begin of each layer
  std::map<std::string, int> lines_;                  ///< layer name → line, counted from 1
  std::map<std::string_view, int> layers_of_a_kind_;  ///< default name → how many so far
  YAML::Mark last_mark_;  ///< the mark of the layer being added, in the end that of the last one
};

}  // namespace lockstep
