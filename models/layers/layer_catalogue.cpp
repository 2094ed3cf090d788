// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table of layer kinds: a new kind is one line here and one class in models/layers.
#include "models/layers/activations.hpp"
#include "models/layers/norms.hpp"
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
constexpr std::array<std::string_view, 9> kConvTransposeKeys{
    "name", "out", "kernel", "stride", "padding", "output_padding", "dilation", "groups", "bias"};
constexpr std::array<std::string_view, 4> kPoolKeys{"name", "kernel", "stride", "padding"};
constexpr std::array<std::string_view, 3> kLinearKeys{"name", "out", "bias"};
constexpr std::array<std::string_view, 2> kDropoutKeys{"name", "p"};
constexpr std::array<std::string_view, 2> kFromKeys{"name", "from"};
constexpr std::array<std::string_view, 2> kGeluKeys{"name", "approximate"};
constexpr std::array<std::string_view, 2> kLeakyReluKeys{"name", "slope"};
constexpr std::array<std::string_view, 2> kEluKeys{"name", "alpha"};
constexpr std::array<std::string_view, 4> kBatchNormKeys{"name", "eps", "momentum", "affine"};
constexpr std::array<std::string_view, 3> kLayerNormKeys{"name", "eps", "affine"};
constexpr std::array<std::string_view, 4> kGroupNormKeys{"name", "groups", "eps", "affine"};
constexpr std::array<std::string_view, 2> kAdaptiveKeys{"name", "out"};
constexpr std::array<std::string_view, 1> kNameOnly{"name"};

constexpr std::array<LayerKind, 27> kCatalogue{{
    {"conv2d", "conv", "", kConvKeys, Conv2dLayer::make},
    {"conv_transpose2d", "conv", "", kConvTransposeKeys, ConvTranspose2dLayer::make},
    {"max_pool", "pool", "kernel", kPoolKeys, MaxPoolLayer::make},
    {"avg_pool", "pool", "kernel", kPoolKeys, AvgPoolLayer::make},
    {"global_avg_pool", "pool", "", kNameOnly, GlobalAvgPoolLayer::make},
    {"adaptive_avg_pool", "pool", "out", kAdaptiveKeys, AdaptiveAvgPoolLayer::make},
    {"batch_norm", "bn", "", kBatchNormKeys, BatchNormLayer::make},
    {"layer_norm", "ln", "", kLayerNormKeys, GroupNormLayer::make_layer_norm},
    {"group_norm", "gn", "groups", kGroupNormKeys, GroupNormLayer::make},
    {"relu", "relu", "", kNameOnly, ReluLayer::make},
    {"relu6", "relu", "", kNameOnly, ActivationLayer::make<Activation::kRelu6>},
    {"tanh", "tanh", "", kNameOnly, ActivationLayer::make<Activation::kTanh>},
    {"sigmoid", "sigmoid", "", kNameOnly, ActivationLayer::make<Activation::kSigmoid>},
    {"gelu", "gelu", "", kGeluKeys, ActivationLayer::make_gelu},
    {"leaky_relu", "leaky", "slope", kLeakyReluKeys, ActivationLayer::make_leaky_relu},
    {"elu", "elu", "alpha", kEluKeys, ActivationLayer::make_elu},
    {"silu", "silu", "", kNameOnly, ActivationLayer::make<Activation::kSilu>},
    {"hardsigmoid", "hsigmoid", "", kNameOnly, ActivationLayer::make<Activation::kHardSigmoid>},
    {"hardswish", "hswish", "", kNameOnly, ActivationLayer::make<Activation::kHardSwish>},
    {"dropout", "drop", "p", kDropoutKeys, DropoutLayer::make_elementwise},
    {"dropout2d", "drop", "p", kDropoutKeys, DropoutLayer::make_channelwise},
    {"add", "add", "from", kFromKeys, AddLayer::make},
    {"multiply", "multiply", "from", kFromKeys, MultiplyLayer::make},
    {"concat", "concat", "from", kFromKeys, ConcatLayer::make},
    {"route", "route", "from", kFromKeys, RouteLayer::make},
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
