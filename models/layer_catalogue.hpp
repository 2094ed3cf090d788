// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The kinds of layers that a network file may name.
#pragma once

#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace lockstep {

struct LayerKind {
  std::string_view kind;                   ///< as in YAML: "max_pool"
  std::string_view default_name;           ///< "pool": layers without a name are pool1, pool2, ...
  std::string_view main_key;               ///< the option meant by `max_pool: 2`; empty: there is none
  std::span<const std::string_view> keys;  ///< all options
  std::unique_ptr<Layer> (*make)(const LayerOptions& options, const LayerPlace& place);
};

/// All kinds, in the order in which messages list them.
std::span<const LayerKind> layer_catalogue();
/// Null if there is no such kind.
const LayerKind* find_layer_kind(std::string_view kind);

}  // namespace lockstep
