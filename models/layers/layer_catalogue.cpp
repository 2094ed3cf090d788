// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table of layer kinds: a new kind is one line here and one class in models/layers.
#include "models/layers/activations.hpp"
#include "models/layers/batch_norm.hpp"
#include "models/layers/pools.hpp"
#include "models/layers/weighted.hpp"
#include "models/layers/wiring.hpp"
#include "models/network_builder.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 8> kConvKeys{"name",    "out",      "kernel", "stride",
                                                    "padding", "dilation", "groups", "bias"};
constexpr std::array<std::string_view, 4> kPoolKeys{"name", "kernel", "stride", "padding"};
constexpr std::array<std::string_view, 3> kLinearKeys{"name", "out", "bias"};
constexpr std::array<std::string_view, 2> kDropoutKeys{"name", "p"};
constexpr std::array<std::string_view, 2> kAddKeys{"name", "from"};
constexpr std::array<std::string_view, 2> kGeluKeys{"name", "approximate"};
constexpr std::array<std::string_view, 4> kBatchNormKeys{"name", "eps", "momentum", "affine"};
constexpr std::array<std::string_view, 1> kNameOnly{"name"};

constexpr std::array<LayerKind, 16> kCatalogue{{
    {"conv2d", "conv", "", kConvKeys, Conv2dLayer::make},
    {"max_pool", "pool", "kernel", kPoolKeys, MaxPoolLayer::make},
    {"avg_pool", "pool", "kernel", kPoolKeys, AvgPoolLayer::make},
    {"global_avg_pool", "pool", "", kNameOnly, GlobalAvgPoolLayer::make},
    {"batch_norm", "bn", "", kBatchNormKeys, BatchNormLayer::make},
    {"relu", "relu", "", kNameOnly, ReluLayer::make},
    {"relu6", "relu", "", kNameOnly, ActivationLayer::make_relu6},
    {"tanh", "tanh", "", kNameOnly, ActivationLayer::make_tanh},
    {"sigmoid", "sigmoid", "", kNameOnly, ActivationLayer::make_sigmoid},
    {"gelu", "gelu", "", kGeluKeys, GeluLayer::make},
    {"dropout", "drop", "p", kDropoutKeys, DropoutLayer::make_elementwise},
    {"dropout2d", "drop", "p", kDropoutKeys, DropoutLayer::make_channelwise},
    {"add", "add", "from", kAddKeys, AddLayer::make},
    {"route", "route", "from", kAddKeys, RouteLayer::make},
    {"flatten", "flatten", "", kNameOnly, FlattenLayer::make},
    {"linear", "fc", "out", kLinearKeys, LinearLayer::make},
}};

}  // namespace

std::span<const LayerKind> layer_catalogue() {
  return kCatalogue;
}

const LayerKind* find_layer_kind(std::string_view kind) {
  const auto* found = std::ranges::find(kCatalogue, kind, &LayerKind::kind);
  return found == kCatalogue.end() ? nullptr : found;
}

}  // namespace lockstep
