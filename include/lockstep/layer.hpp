// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A layer of your own, computed on CPUs: give its kind to Network::load, and name it in the network's YAML.
#pragma once

#include <lockstep/shape.hpp>
#include <lockstep/version.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

LOCKSTEP_BEGIN_NAMESPACE

/// A tensor that the layer trains.
struct LayerParameter {
  enum class Initial { kRandom, kZeros, kOnes };

  std::string name;        ///< "weight": the tensor is LAYER.weight
  std::vector<int> shape;  ///< the last dimension innermost
  Initial initial = Initial::kRandom;
  int fan_in = 1;  ///< kRandom: uniform in ±1/sqrt(fan_in)
};

/// The tensors of a pass. A grain of the batch goes through a layer at a time, with the sample innermost: element f of
/// sample n of x is x[f * columns + n], where f counts [channel][row][column]. Columns from `samples` on are padding: they
/// may hold any finite numbers, their dy is 0, and what is made of them must be finite.
struct LayerPass {
  int columns = 0;  ///< a multiple of 16
  int samples = 0;  ///< columns that are samples
  bool training = false;
  const float* weights = nullptr;  ///< the layer's parameters, one after the other
  const float* x = nullptr;        ///< [input.features()][columns]
};
struct ForwardPass : LayerPass {
  float* y = nullptr;  ///< [output.features()][columns], overwritten; does not overlap x
};
struct BackwardPass : LayerPass {
  const float* dy = nullptr;  ///< gradient of y
  /// backward_weights: the parameters' gradients, overwritten with the sum over all columns.
  float* gradients = nullptr;
  float* dx = nullptr;  ///< backward_data: overwritten
};

/// Immutable: several threads call its passes at once. A pass that adds in a fixed order gives the same bits on any
/// number of ranks, for ranks share a batch by whole grains.
class Layer {
 public:
  explicit Layer(const ImageShape& output, std::vector<LayerParameter> parameters = {})
      : output_(output), parameters_(std::move(parameters)) {}
  virtual ~Layer() = default;

  virtual void forward(const ForwardPass& pass) const = 0;
  /// Not called for a layer without parameters.
  virtual void backward_weights(const BackwardPass& /*pass*/) const {}
  /// Not called for the first layer.
  virtual void backward_data(const BackwardPass& pass) const = 0;

  const ImageShape& output() const { return output_; }
  const std::vector<LayerParameter>& parameters() const { return parameters_; }

 private:
  ImageShape output_;
  std::vector<LayerParameter> parameters_;
};

/// A layer's options in the network's YAML. A wrong one is refused with file, line and column.
class LayerOptions {
 public:
  struct Inside;  ///< Lockstep's own
  explicit LayerOptions(const Inside& inside) : inside_(inside) {}

  /// In [least, most].
  double number(const std::string& key, double least, double most, double fallback) const;
  int integer(const std::string& key, int least, int most, int fallback) const;
  bool yes_or_no(const std::string& key, bool fallback) const;

 private:
  const Inside& inside_;
};

/// A kind of layer, such as `- scale: {by: 2}`.
struct LayerKind {
  std::string name;                    ///< "scale"; none of Lockstep's own kinds
  std::vector<std::string> keys = {};  ///< the options, "by"; `name` is there always
  /// Makes the layer for an input of this shape. What it throws ends Network::load.
  std::function<std::unique_ptr<Layer>(const ImageShape& input, const LayerOptions& options)> make = {};
};

LOCKSTEP_END_NAMESPACE
